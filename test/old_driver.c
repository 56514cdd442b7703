/* A driver that has next to nothing. */
int cuInit(unsigned flags) { return flags ? 1 : 0; }

int cuDriverGetVersion(int *version)
{
    *version = 11040;
    return 0;
}
