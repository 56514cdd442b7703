(* Quartiles of a sample. *)

type t = { low : float; median : float; high : float }

(* Between two values, as far as the place is from each. *)
let quantile sorted fraction =
  let last = Array.length sorted - 1 in
  let place = fraction *. float_of_int last in
  let below = int_of_float place in
  let above = min last (below + 1) in
  let part = place -. float_of_int below in
  sorted.(below) +. (part *. (sorted.(above) -. sorted.(below)))

let of_list values =
  if values = [] then invalid_arg "Stats.of_list: no values";
  let sorted = Array.of_list values in
  Array.sort compare sorted;
  {
    low = quantile sorted 0.25;
    median = quantile sorted 0.5;
    high = quantile sorted 0.75;
  }
