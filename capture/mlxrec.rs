//! mlxrec.h for Rust: writes a log of what a program dispatches to Metal (.mlxtrace), of which `mlxc import` makes graphs.
//!
//! ```sh
//! cc -c -x c -DMLXREC_IMPLEMENTATION capture/mlxrec.h -o mlxrec.o
//! rustc --edition 2021 -O -C link-arg=mlxrec.o engine.rs      # which has: #[path = "capture/mlxrec.rs"] mod mlxrec;
//! ```
//!
//! What the calls mean is in mlxrec.h. [`Recorder::close`] returns the first error; a recorder that is dropped loses it.
#![allow(dead_code)]

use std::ffi::{c_char, c_int, c_void, CString};
use std::io::Error;

#[repr(C)]
struct Raw {
    _private: [u8; 0],
}

/// A function constant: its index, its type as Metal numbers it (MTLDataType: bool 53, int 29, uint 33, float 3), and its bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Constant {
    pub index: u32,
    pub kind: u32,
    pub bits: u64,
}

extern "C" {
    fn mlxrec_open(path: *const c_char, program: *const c_char) -> *mut Raw;
    fn mlxrec_close(r: *mut Raw) -> c_int;
    fn mlxrec_source(r: *mut Raw, name: *const c_char, text: *const c_char, bytes: usize, options: *const c_char) -> u64;
    fn mlxrec_metallib(r: *mut Raw, name: *const c_char, data: *const c_void, bytes: usize) -> u64;
    fn mlxrec_kernel(r: *mut Raw, library: u64, function: *const c_char, constants: *const Constant, count: usize) -> u64;
    fn mlxrec_buffer(r: *mut Raw, bytes: u64, name: *const c_char, role: *const c_char, contents: *const c_void) -> u64;
    fn mlxrec_part(r: *mut Raw, buffer: u64, offset: u64, bytes: u64) -> u64;
    fn mlxrec_write(r: *mut Raw, buffer: u64, offset: u64, data: *const c_void, bytes: usize);
    fn mlxrec_free(r: *mut Raw, buffer: u64);
    fn mlxrec_step(r: *mut Raw, name: *const c_char, concurrent: c_int);
    fn mlxrec_param(r: *mut Raw, name: *const c_char, value: u32);
    fn mlxrec_end(r: *mut Raw);
    fn mlxrec_use(r: *mut Raw, kernel: u64);
    fn mlxrec_bind(r: *mut Raw, slot: u32, buffer: u64, offset: u64);
    fn mlxrec_bytes(r: *mut Raw, slot: u32, data: *const c_void, bytes: usize);
    fn mlxrec_threadgroup(r: *mut Raw, slot: u32, bytes: u32);
    fn mlxrec_reads(r: *mut Raw, slot: u32, offset: u64, bytes: u64);
    fn mlxrec_writes(r: *mut Raw, slot: u32, offset: u64, bytes: u64, must: c_int);
    fn mlxrec_threads(r: *mut Raw, x: u32, y: u32, z: u32, gx: u32, gy: u32, gz: u32);
    fn mlxrec_threadgroups(r: *mut Raw, x: u32, y: u32, z: u32, gx: u32, gy: u32, gz: u32);
    fn mlxrec_barrier(r: *mut Raw);
    fn mlxrec_copy(r: *mut Raw, from: u64, from_offset: u64, to: u64, to_offset: u64, bytes: u64);
    fn mlxrec_fill(r: *mut Raw, buffer: u64, offset: u64, bytes: u64, value: u8);
    fn mlxrec_push(r: *mut Raw, label: *const c_char);
    fn mlxrec_pop(r: *mut Raw);
}

/// A log that is being written.
pub struct Recorder(*mut Raw);

// A recorder may move to another thread; calls are for one at a time, as `&mut self` says.
unsafe impl Send for Recorder {}

fn text(s: &str) -> CString {
    CString::new(s.replace('\0', "\u{fffd}")).expect("no NUL is left")
}

/// The pointer of a text, or NULL.
fn or_null(s: &Option<CString>) -> *const c_char {
    s.as_ref().map_or(std::ptr::null(), |s| s.as_ptr())
}

impl Recorder {
    /// Begins a log. `program` is what the log says of who wrote it.
    pub fn open(path: &str, program: &str) -> Result<Recorder, Error> {
        let r = unsafe { mlxrec_open(text(path).as_ptr(), text(program).as_ptr()) };
        if r.is_null() { Err(Error::last_os_error()) } else { Ok(Recorder(r)) }
    }

    /// Ends the log, and returns the first error of any call.
    pub fn close(mut self) -> Result<(), Error> {
        let error = unsafe { mlxrec_close(std::mem::replace(&mut self.0, std::ptr::null_mut())) };
        if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(error)) }
    }

    /// A library of Metal source; `options` are lines such as `-DN=4`.
    pub fn source(&mut self, name: &str, source: &str, options: Option<&str>) -> u64 {
        let options = options.map(text);
        unsafe { mlxrec_source(self.0, text(name).as_ptr(), source.as_ptr().cast(), source.len(), or_null(&options)) }
    }

    /// A compiled library.
    pub fn metallib(&mut self, name: &str, data: &[u8]) -> u64 {
        unsafe { mlxrec_metallib(self.0, text(name).as_ptr(), data.as_ptr().cast(), data.len()) }
    }

    /// A function of a library.
    pub fn kernel(&mut self, library: u64, function: &str, constants: &[Constant]) -> u64 {
        unsafe { mlxrec_kernel(self.0, library, text(function).as_ptr(), constants.as_ptr(), constants.len()) }
    }

    /// Memory of so many bytes. The role is "weight", "input", "output", "state" or "scratch", or follows from who uses it.
    ///
    /// # Panics
    ///
    /// If contents are not as long as the buffer.
    pub fn buffer(&mut self, bytes: u64, name: &str, role: Option<&str>, contents: Option<&[u8]>) -> u64 {
        assert!(contents.map_or(true, |c| c.len() as u64 == bytes), "contents of {name} are not {bytes} bytes");
        let role = role.map(text);
        let data = contents.map_or(std::ptr::null(), |c| c.as_ptr().cast());
        unsafe { mlxrec_buffer(self.0, bytes, text(name).as_ptr(), or_null(&role), data) }
    }

    /// A part of a buffer that is a buffer by itself.
    pub fn part(&mut self, buffer: u64, offset: u64, bytes: u64) -> u64 {
        unsafe { mlxrec_part(self.0, buffer, offset, bytes) }
    }

    /// The host writes a buffer.
    pub fn write(&mut self, buffer: u64, offset: u64, data: &[u8]) {
        unsafe { mlxrec_write(self.0, buffer, offset, data.as_ptr().cast(), data.len()) }
    }

    pub fn free(&mut self, buffer: u64) {
        unsafe { mlxrec_free(self.0, buffer) }
    }

    /// A run of the graph of a name begins. Commands run one after another, or at once but for barriers (concurrent).
    pub fn step(&mut self, name: &str, concurrent: bool) {
        unsafe { mlxrec_step(self.0, text(name).as_ptr(), concurrent.into()) }
    }

    pub fn param(&mut self, name: &str, value: u32) {
        unsafe { mlxrec_param(self.0, text(name).as_ptr(), value) }
    }

    pub fn end(&mut self) {
        unsafe { mlxrec_end(self.0) }
    }

    /// The kernel of the dispatches that follow.
    pub fn kernel_is(&mut self, kernel: u64) -> &mut Self {
        unsafe { mlxrec_use(self.0, kernel) }
        self
    }

    pub fn bind(&mut self, slot: u32, buffer: u64, offset: u64) -> &mut Self {
        unsafe { mlxrec_bind(self.0, slot, buffer, offset) }
        self
    }

    pub fn bytes(&mut self, slot: u32, data: &[u8]) -> &mut Self {
        unsafe { mlxrec_bytes(self.0, slot, data.as_ptr().cast(), data.len()) }
        self
    }

    pub fn threadgroup(&mut self, slot: u32, bytes: u32) -> &mut Self {
        unsafe { mlxrec_threadgroup(self.0, slot, bytes) }
        self
    }

    /// What the next dispatch reads of a slot.
    pub fn reads(&mut self, slot: u32, offset: u64, bytes: u64) -> &mut Self {
        unsafe { mlxrec_reads(self.0, slot, offset, bytes) }
        self
    }

    /// What the next dispatch may write of a slot, or certainly writes all of (must).
    pub fn writes(&mut self, slot: u32, offset: u64, bytes: u64, must: bool) -> &mut Self {
        unsafe { mlxrec_writes(self.0, slot, offset, bytes, must.into()) }
        self
    }

    /// A dispatch of so many threads, in threadgroups of a size.
    pub fn threads(&mut self, grid: [u32; 3], group: [u32; 3]) {
        unsafe { mlxrec_threads(self.0, grid[0], grid[1], grid[2], group[0], group[1], group[2]) }
    }

    /// A dispatch of so many threadgroups of a size.
    pub fn threadgroups(&mut self, grid: [u32; 3], group: [u32; 3]) {
        unsafe { mlxrec_threadgroups(self.0, grid[0], grid[1], grid[2], group[0], group[1], group[2]) }
    }

    pub fn barrier(&mut self) {
        unsafe { mlxrec_barrier(self.0) }
    }

    pub fn copy(&mut self, from: (u64, u64), to: (u64, u64), bytes: u64) {
        unsafe { mlxrec_copy(self.0, from.0, from.1, to.0, to.1, bytes) }
    }

    pub fn fill(&mut self, buffer: u64, offset: u64, bytes: u64, value: u8) {
        unsafe { mlxrec_fill(self.0, buffer, offset, bytes, value) }
    }

    /// A group of commands with a label, up to pop.
    pub fn push(&mut self, label: &str) {
        unsafe { mlxrec_push(self.0, text(label).as_ptr()) }
    }

    pub fn pop(&mut self) {
        unsafe { mlxrec_pop(self.0) }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.0.is_null() {
            unsafe { mlxrec_close(self.0) };
        }
    }
}
