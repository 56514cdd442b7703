/* A driver that takes the process with it when it is loaded. */
#include <stdlib.h>

__attribute__((constructor)) static void crash(void) { abort(); }
