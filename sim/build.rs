//! Gives the library the driver's name inside, which is how programs find it once it is loaded, and keeps
//! it loaded: its threads run to the end of the process.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("linux") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,libcuda.dylib"),
        _ => {}
    }
}
