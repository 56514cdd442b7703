//! Compiling one program.

use super::cache::Cache;
use super::library::{check, Handle, Nvrtc};
use super::{Error, Result};
use crate::os_bytes::OsStrExt;
use std::ffi::{c_char, c_int, CStr, CString};
use std::path::PathBuf;

/// What to compile, and how.
#[derive(Default)]
pub struct Request {
    /// CUDA C.
    pub source: Vec<u8>,
    /// What the log calls the source; may be empty.
    pub name: Vec<u8>,
    /// Options of NVRTC, in its order.
    pub options: Vec<Vec<u8>>,
    /// Headers that are not files: the name to include each by, and its text.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Expressions whose lowered names are wanted.
    pub expressions: Vec<Vec<u8>>,
    /// Machine code for this architecture ("sm_90") is wanted rather than PTX.
    pub cubin_for: Option<Vec<u8>>,
    /// The folder of a cache.
    pub cache: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// PTX without a NUL at its end, or a CUBIN.
    pub image: Vec<u8>,
    /// What the compiler said; may be empty.
    pub log: Vec<u8>,
    /// The lowered names, in the order of the expressions.
    pub lowered: Vec<Vec<u8>>,
    /// Whether it comes from the cache.
    pub cached: bool,
}

/// Compiles, or finds in the cache what was compiled before.
pub fn compile(request: &Request) -> Result<Compiled> {
    let texts = Texts::of(request)?;
    let nvrtc = Nvrtc::get()?;
    let cache = match &request.cache {
        Some(folder) => Cache::for_request(folder, request, nvrtc)?,
        None => None,
    };
    if let Some(found) = cache.as_ref().and_then(Cache::read) {
        return Ok(found);
    }
    let compiled = run(nvrtc, &texts, request.cubin_for.is_some())?;
    if let Some(cache) = cache {
        cache.write(&compiled);
    }
    Ok(compiled)
}

/// The request's texts as C wants them, alive as long as this is.
struct Texts {
    source: CString,
    name: Option<CString>,
    options: Vec<CString>,
    header_names: Vec<CString>,
    headers: Vec<CString>,
    expressions: Vec<CString>,
}

impl Texts {
    fn of(request: &Request) -> Result<Texts> {
        let all = |what: &str, texts: &mut dyn Iterator<Item = &Vec<u8>>| {
            texts
                .enumerate()
                .map(|(i, text)| c_text(&format!("{what} {i}"), text))
                .collect::<Result<Vec<CString>>>()
        };
        let mut options = all("option", &mut request.options.iter())?;
        if let Some(architecture) = &request.cubin_for {
            check_architecture(architecture)?;
            refuse_another_architecture(&request.options)?;
            let option = [b"--gpu-architecture=", architecture.as_slice()].concat();
            options.push(c_text("architecture", &option)?);
        }
        let texts = Texts {
            source: c_text("source", &request.source)?,
            // NVRTC has a name of its own for a program without one.
            name: match request.name.as_slice() {
                [] => None,
                name => Some(c_text("name", name)?),
            },
            options,
            header_names: all("name of header", &mut request.headers.iter().map(|h| &h.0))?,
            headers: all("header", &mut request.headers.iter().map(|h| &h.1))?,
            expressions: all("name expression", &mut request.expressions.iter())?,
        };
        let counts = [
            texts.options.len(),
            texts.headers.len(),
            texts.expressions.len(),
        ];
        if counts.iter().any(|n| *n > MOST) {
            return Err(Error::invalid(format!(
                "{} options, {} headers, {} name expressions: at most {MOST} of each",
                counts[0], counts[1], counts[2]
            )));
        }
        Ok(texts)
    }
}

/// More than anybody needs, and far from the end of a C int.
const MOST: usize = 1_000_000;

fn c_text(what: &str, bytes: &[u8]) -> Result<CString> {
    CString::new(bytes).map_err(|e| {
        Error::invalid(format!(
            "{what} has a NUL at byte {} of {}; a C text cannot",
            e.nul_position(),
            bytes.len()
        ))
    })
}

/// "sm_90", "sm_90a", "sm_100f": what a CUBIN can be made for.
fn check_architecture(text: &[u8]) -> Result<()> {
    let number = text.strip_prefix(b"sm_").unwrap_or_default();
    let digits = number.iter().take_while(|c| c.is_ascii_digit()).count();
    if (2..=4).contains(&digits) && matches!(&number[digits..], b"" | b"a" | b"f") {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "architecture {:?} is not the name of a real one, as \"sm_90\" for compute capability 9.0",
        String::from_utf8_lossy(text)
    )))
}

/// Some versions of NVRTC take the last of several architectures, others none.
fn refuse_another_architecture(options: &[Vec<u8>]) -> Result<()> {
    let chooses = |option: &&Vec<u8>| {
        let name = option.split(|c| *c == b'=').next();
        matches!(name, Some(b"-arch" | b"--gpu-architecture"))
    };
    match options.iter().find(chooses) {
        None => Ok(()),
        Some(option) => Err(Error::invalid(format!(
            "option {:?} chooses an architecture, as the target CUBIN does",
            String::from_utf8_lossy(option)
        ))),
    }
}

/// A program of NVRTC, destroyed on every way out.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: `create` made it, and this is its only end.
        unsafe { (self.nvrtc.functions.destroy)(&mut self.handle) };
    }
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn run(nvrtc: &Nvrtc, texts: &Texts, cubin: bool) -> Result<Compiled> {
    let program = Program::create(nvrtc, texts)?;
    for expression in &texts.expressions {
        // SAFETY: a live program and a C text, which NVRTC copies.
        check("nvrtc_add_name_expression", unsafe {
            (nvrtc.functions.add_expression)(program.handle, expression.as_ptr())
        })?;
    }
    let log = program.compile(texts)?;
    Ok(Compiled {
        image: program.image(cubin)?,
        log,
        lowered: texts
            .expressions
            .iter()
            .map(|e| program.lowered_name(e))
            .collect::<Result<_>>()?,
        cached: false,
    })
}

impl<'a> Program<'a> {
    fn create(nvrtc: &'a Nvrtc, texts: &Texts) -> Result<Program<'a>> {
        let (headers, names) = (pointers(&texts.headers), pointers(&texts.header_names));
        let name = texts.name.as_ref().map_or(std::ptr::null(), |n| n.as_ptr());
        let mut handle = std::ptr::null_mut();
        // SAFETY: both arrays have as many C texts as is said; NVRTC copies all of them.
        check("nvrtc_create_program", unsafe {
            (nvrtc.functions.create)(
                &mut handle,
                texts.source.as_ptr(),
                name,
                headers.len() as c_int,
                headers.as_ptr(),
                names.as_ptr(),
            )
        })?;
        Ok(Program { nvrtc, handle })
    }

    /// The log, also in the error.
    fn compile(&self, texts: &Texts) -> Result<Vec<u8>> {
        let mut options = texts.options.clone();
        for folder in &self.nvrtc.include_folders {
            // After the user's own folders, so that those are searched first.
            let option = [b"-I", folder.as_os_str().as_bytes()].concat();
            options.push(c_text("include folder", &option)?);
        }
        let pointers = pointers(&options);
        // SAFETY: an array of that many C texts, all alive until the end of this function.
        let status = unsafe {
            (self.nvrtc.functions.compile)(self.handle, pointers.len() as c_int, pointers.as_ptr())
        };
        let log = self.log();
        check("nvrtc_compile_program", status).map_err(|mut error| {
            if let Some(name) = &texts.name {
                error.text = format!("{} {}", error.text, name.to_string_lossy());
            }
            let log = String::from_utf8_lossy(log.as_deref().unwrap_or_default());
            if !log.trim().is_empty() {
                error.text = format!("{}: {}", error.text, log.trim_end());
            }
            if status == Error::BUILTINS {
                let (major, minor) = self.nvrtc.version;
                error.text = format!(
                    "{} (libnvrtc-builtins.so.{major}.{minor} belongs beside {})",
                    error.text,
                    self.nvrtc.path.display()
                );
            }
            error
        })?;
        log
    }

    fn log(&self) -> Result<Vec<u8>> {
        let functions = &self.nvrtc.functions;
        let log = self.read("nvrtc_get_program_log", functions.log_size, functions.log)?;
        Ok(without_nul(log))
    }

    fn image(&self, cubin: bool) -> Result<Vec<u8>> {
        let functions = &self.nvrtc.functions;
        let (what, image) = if cubin {
            let name = "nvrtc_get_CUBIN";
            (
                name,
                self.read(name, functions.cubin_size, functions.cubin)?,
            )
        } else {
            let name = "nvrtc_get_PTX";
            let text = self.read(name, functions.ptx_size, functions.ptx)?;
            (name, without_nul(text))
        };
        if image.is_empty() {
            return Err(Error::new(
                Error::INVALID_OPTION,
                format!("{what}: nothing of this kind was made; is there an option, as -dlto, that asks for another?"),
            ));
        }
        Ok(image)
    }

    fn read(
        &self,
        name: &str,
        size_of: unsafe extern "C" fn(Handle, *mut usize) -> c_int,
        copy: unsafe extern "C" fn(Handle, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: a live program; writes one number.
        check(name, unsafe { size_of(self.handle, &mut size) })?;
        let mut bytes = vec![0u8; size];
        if size > 0 {
            // SAFETY: writes as many bytes as it has just said.
            check(name, unsafe {
                copy(self.handle, bytes.as_mut_ptr().cast())
            })?;
        }
        Ok(bytes)
    }

    fn lowered_name(&self, expression: &CStr) -> Result<Vec<u8>> {
        let mut name = std::ptr::null();
        // SAFETY: a live program that was compiled, and a C text.
        let status = unsafe {
            (self.nvrtc.functions.lowered_name)(self.handle, expression.as_ptr(), &mut name)
        };
        check("nvrtc_get_lowered_name", status).map_err(|mut error| {
            error.text = format!("{}: {:?}", error.text, expression.to_string_lossy());
            error
        })?;
        if name.is_null() {
            return Err(Error::new(Error::INTERNAL, "nvrtc_get_lowered_name"));
        }
        // SAFETY: NVRTC's own text, which lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec())
    }
}

/// NVRTC counts a text's closing NUL.
fn without_nul(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&0) {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::library::Functions;
    use std::cell::Cell;

    fn refused(request: Request) -> String {
        let error = compile(&request).unwrap_err();
        assert_eq!(error.status, Error::INVALID_ARGUMENT, "{}", error.text);
        error.text
    }

    #[test]
    fn arguments_are_refused_before_a_library_is_looked_for() {
        let text = refused(Request {
            source: b"a\0b".to_vec(),
            ..Request::default()
        });
        assert!(
            text.starts_with("source has a NUL at byte 1 of 3"),
            "{text}"
        );
        let text = refused(Request {
            options: vec![b"-G".to_vec(), b"\0".to_vec()],
            ..Request::default()
        });
        assert!(text.starts_with("option 1 has a NUL"), "{text}");
        for wrong in [
            "",
            "90",
            "compute_90",
            "sm_",
            "sm_9",
            "sm_90x",
            "sm_90 ",
            "sm_90ab",
        ] {
            let text = refused(Request {
                cubin_for: Some(wrong.into()),
                ..Request::default()
            });
            assert!(text.contains(&format!("{wrong:?}")), "{text}");
        }
        for right in ["sm_75", "sm_90a", "sm_100f"] {
            assert_eq!(check_architecture(right.as_bytes()), Ok(()));
        }
    }

    thread_local! {
        /// The function that fails, and how many programs there are.
        static FAILING: Cell<&'static str> = const { Cell::new("") };
        static LIVE: Cell<i32> = const { Cell::new(0) };
    }

    fn answer(name: &str) -> c_int {
        c_int::from(FAILING.get() == name)
    }

    unsafe extern "C" fn ints(_: *mut c_int) -> c_int {
        0
    }
    unsafe extern "C" fn two_ints(_: *mut c_int, _: *mut c_int) -> c_int {
        0
    }
    unsafe extern "C" fn create(
        _: *mut Handle,
        _: *const c_char,
        _: *const c_char,
        _: c_int,
        _: *const *const c_char,
        _: *const *const c_char,
    ) -> c_int {
        let status = answer("create");
        LIVE.set(LIVE.get() + 1 - status);
        status
    }
    unsafe extern "C" fn destroy(_: *mut Handle) -> c_int {
        LIVE.set(LIVE.get() - 1);
        0
    }
    unsafe extern "C" fn add_expression(_: Handle, _: *const c_char) -> c_int {
        answer("expression")
    }
    unsafe extern "C" fn build(_: Handle, _: c_int, _: *const *const c_char) -> c_int {
        answer("compile")
    }
    unsafe extern "C" fn log_size(_: Handle, size: *mut usize) -> c_int {
        // SAFETY: the caller's number.
        unsafe { *size = 2 };
        answer("log size")
    }
    unsafe extern "C" fn image_size(_: Handle, size: *mut usize) -> c_int {
        // SAFETY: the caller's number.
        unsafe { *size = if FAILING.get() == "nothing" { 1 } else { 2 } };
        answer("size")
    }
    unsafe extern "C" fn text(_: Handle, to: *mut c_char) -> c_int {
        // SAFETY: the caller has room for the size it was told, which is at least one.
        unsafe { *to = if FAILING.get() == "nothing" { 0 } else { 64 } };
        answer("text")
    }
    unsafe extern "C" fn lowered(_: Handle, _: *const c_char, to: *mut *const c_char) -> c_int {
        // SAFETY: the caller's pointer.
        unsafe { *to = c"_Z1k".as_ptr() };
        answer("lowered")
    }

    #[test]
    fn a_program_is_destroyed_on_every_way_out() {
        let nvrtc = Nvrtc {
            functions: Functions {
                version: two_ints,
                architecture_count: ints,
                architectures: ints,
                create,
                destroy,
                compile: build,
                log_size,
                log: text,
                ptx_size: image_size,
                ptx: text,
                cubin_size: image_size,
                cubin: text,
                add_expression,
                lowered_name: lowered,
            },
            path: PathBuf::new(),
            version: (13, 0),
            include_folders: vec!["/include".into()],
            fingerprint: Vec::new(),
            libraries: Vec::new(),
        };
        let texts = Texts::of(&Request {
            name: b"k.cu".to_vec(),
            expressions: vec![b"k".to_vec()],
            ..Request::default()
        });
        let texts = texts.unwrap();
        for (failing, part) in [
            ("create", "nvrtc_create_program"),
            ("expression", "nvrtc_add_name_expression"),
            ("compile", "nvrtc_compile_program k.cu: @"),
            ("log size", "nvrtc_get_program_log"),
            ("size", "nvrtc_get_PTX"),
            ("text", "nvrtc_get_program_log"),
            ("nothing", "nvrtc_get_PTX: nothing of this kind"),
            ("lowered", "nvrtc_get_lowered_name: \"k\""),
        ] {
            FAILING.set(failing);
            let error = run(&nvrtc, &texts, false).unwrap_err();
            assert!(error.text.starts_with(part), "{failing}: {}", error.text);
            assert_eq!(LIVE.get(), 0, "{failing}");
        }
        FAILING.set("");
        assert_eq!(run(&nvrtc, &texts, false).unwrap().lowered, [b"_Z1k"]);
        assert_eq!(LIVE.get(), 0);
    }
}
