type t = {
  epochs : int;
  batch : int;
  seed : int;
  hidden : int;
  output : string;
  quiet : bool;
}

let default =
  {
    epochs = 28;
    batch = 50;
    seed = 1;
    hidden = 32;
    output = "digits-loss.svg";
    quiet = false;
  }

let help =
  Printf.sprintf
    "Trains a small network on handwritten digits, as plain launches and as one graph.\n\n\
    \  --epochs N    passes over the training images (%d)\n\
    \  --batch N     images of a step (%d)\n\
    \  --seed N      for the first weights and the order of images (%d)\n\
    \  --hidden N    hidden units (%d)\n\
    \  --output FILE the picture of the loss (%s)\n\
    \  --quiet       only the last line\n\
    \  --help        this text\n\n\
     CUDAGRAPH_DRIVER chooses the driver: system, sim, or the path of a libcuda.\n"
    default.epochs default.batch default.seed default.hidden default.output

let fail text =
  prerr_endline ("digits: " ^ text ^ "; see --help");
  exit 2

let number ~name ~least ~most text =
  match int_of_string_opt text with
  | Some n when n >= least && n <= most -> n
  | _ -> fail (Printf.sprintf "%s %s is not a number from %d to %d" name text least most)

let rec parse options = function
  | [] -> options
  | "--epochs" :: n :: rest ->
      parse { options with epochs = number ~name:"--epochs" ~least:1 ~most:1000 n } rest
  | "--batch" :: n :: rest ->
      parse
        { options with batch = number ~name:"--batch" ~least:1 ~most:Data.trained n }
        rest
  | "--seed" :: n :: rest ->
      parse { options with seed = number ~name:"--seed" ~least:0 ~most:max_int n } rest
  | "--hidden" :: n :: rest ->
      parse { options with hidden = number ~name:"--hidden" ~least:1 ~most:4096 n } rest
  | "--output" :: file :: rest -> parse { options with output = file } rest
  | "--quiet" :: rest -> parse { options with quiet = true } rest
  | "--help" :: _ ->
      print_string help;
      exit 0
  | [ (("--epochs" | "--batch" | "--seed" | "--hidden" | "--output") as name) ] ->
      fail (name ^ " needs a value")
  | other :: _ -> fail ("there is no option " ^ other)

let of_command_line () = parse default (List.tl (Array.to_list Sys.argv))
