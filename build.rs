//! Finds the folder of the OCaml installation that this core is built for.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=OCAML_WHERE_PATH");
    println!("cargo:rerun-if-env-changed=OPAM_SWITCH_PREFIX");
    let place = std::env::var("OCAML_WHERE_PATH").ok().or_else(|| {
        let output = Command::new("ocamlc").arg("-where").output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
    });
    // Packages are installed beside OCaml's own library folder.
    let place = place.unwrap_or_default();
    let packages = std::path::Path::new(&place)
        .parent()
        .map(|p| p.display().to_string());
    println!(
        "cargo:rustc-env=CUDAGRAPH_OCAML_LIB={}",
        packages.unwrap_or_default()
    );
}
