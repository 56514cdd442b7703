(* Nanoseconds of a clock that only goes forward; reading it allocates nothing. *)

external now : unit -> (int[@untagged]) = "bench_clock_now_byte" "bench_clock_now"
[@@noalloc]
