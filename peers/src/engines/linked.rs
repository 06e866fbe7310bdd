//! RocksDB and WiredTiger as contestants: C sources of the folder `stores`, compiled when they are needed against the
//! libraries of the system. A missing library is an error then.

use super::Sometimes;
use crate::writes::finished;
use duramen_bench::Result;
use duramen_bench::contest::{Config, Contestant, DiskKind, Durability, Reader, Writer};
use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Sees an entry: its context, the key and its length, the value and its length. Returns whether to go on.
type Visit = unsafe extern "C" fn(*mut c_void, *const u8, usize, *const u8, usize) -> c_int;
type Opaque = *mut c_void;

/// Declares the functions of `stores/store.h`.
macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
        }

        impl Functions {
            #[expect(unsafe_code, reason = "the types are those of stores/store.h")]
            fn of(library: *mut c_void) -> Result<Functions> {
                Ok(Functions {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the library is loaded and stays so, and its functions have these types.
                        unsafe {
                            let address = libc::dlsym(library, name.as_ptr().cast());
                            match address.is_null() {
                                true => return Err(format!("there is no function {name}").into()),
                                false => std::mem::transmute::<
                                    *mut c_void,
                                    unsafe extern "C" fn($($arg),*) $(-> $result)?,
                                >(address),
                            }
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    store_open: fn(*const c_char, u64, c_int) -> Opaque;
    store_close: fn(Opaque);
    store_begin: fn(Opaque);
    store_put: fn(Opaque, *const u8, usize, *const u8, usize);
    store_remove: fn(Opaque, *const u8, usize);
    store_commit: fn(Opaque, c_int);
    store_compact: fn(Opaque);
    reader_open: fn(Opaque) -> Opaque;
    reader_close: fn(Opaque);
    reader_get: fn(Opaque, *const u8, usize, Visit, *mut c_void) -> c_int;
    reader_scan: fn(Opaque, *const u8, usize, Visit, *mut c_void);
}

/// A library of the system.
pub(crate) trait Library: Sync + 'static {
    /// Its name, of the contestant, the library and the source.
    const NAME: &'static str;
}

/// RocksDB.
pub(crate) struct OfRocksDb;
/// WiredTiger.
pub(crate) struct OfWiredTiger;

impl Library for OfRocksDb {
    const NAME: &'static str = "rocksdb";
}

impl Library for OfWiredTiger {
    const NAME: &'static str = "wiredtiger";
}

/// A store of a library of the system.
pub(crate) struct Linked<K> {
    functions: Functions,
    /// Null while it is closed.
    store: Opaque,
    durability: Durability,
    folder: PathBuf,
    synced: Sometimes,
    _compiled: TempDir,
    kind: PhantomData<K>,
}

#[expect(unsafe_code, reason = "the libraries are made for several threads")]
// SAFETY: both libraries allow readers of their own in several threads, and one thread writes.
unsafe impl<K> Sync for Linked<K> {}

/// Compiles the source of a library. An error if the library is missing.
fn compile(name: &str, into: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores").join(format!("{name}.c"));
    let compiled = into.join(format!("lib{name}-store.so"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&compiled).arg(source).arg(format!("-l{name}"));
    finished(cc.output().map_err(|cause| format!("cc: {cause}"))?, "cc")?;
    Ok(compiled)
}

#[expect(unsafe_code, reason = "all calls of the libraries are here")]
mod calls {
    use super::{Config, Functions, Linked, Opaque, Visit, c_int, c_void};
    use std::ffi::CString;

    // SAFETY of all calls: the arguments are of the types of `stores/store.h`, slices live during a call, and a store
    // or a reader is passed between its opening and its closing only.

    pub(super) fn open(functions: &Functions, folder: &CString, config: &Config) -> Opaque {
        // SAFETY: above.
        unsafe { (functions.store_open)(folder.as_ptr(), config.cache as u64, c_int::from(config.direct_io)) }
    }

    pub(super) fn close(functions: &Functions, store: Opaque) {
        // SAFETY: above.
        unsafe { (functions.store_close)(store) }
    }

    pub(super) fn compact(functions: &Functions, store: Opaque) {
        // SAFETY: above.
        unsafe { (functions.store_compact)(store) }
    }

    pub(super) fn begin(functions: &Functions, store: Opaque) {
        // SAFETY: above.
        unsafe { (functions.store_begin)(store) }
    }

    pub(super) fn commit(functions: &Functions, store: Opaque, synced: bool) {
        // SAFETY: above.
        unsafe { (functions.store_commit)(store, synced.into()) }
    }

    pub(super) fn put(functions: &Functions, store: Opaque, key: &[u8], value: &[u8]) {
        // SAFETY: above.
        unsafe { (functions.store_put)(store, key.as_ptr(), key.len(), value.as_ptr(), value.len()) }
    }

    pub(super) fn remove(functions: &Functions, store: Opaque, key: &[u8]) {
        // SAFETY: above.
        unsafe { (functions.store_remove)(store, key.as_ptr(), key.len()) }
    }

    /// A reader of a store.
    pub(crate) struct View<'a> {
        functions: &'a Functions,
        reader: Opaque,
    }

    impl<'a> View<'a> {
        pub(super) fn open<K>(linked: &'a Linked<K>) -> View<'a> {
            // SAFETY: above.
            View { functions: &linked.functions, reader: unsafe { (linked.functions.reader_open)(linked.store) } }
        }

        #[inline]
        pub(super) fn get<R, F: FnOnce(&[u8]) -> R>(&mut self, key: &[u8], check: F) -> Option<R> {
            let mut state = (Some(check), None::<R>);
            let context = (&raw mut state).cast();
            // SAFETY: above; `see_value` gets its context.
            unsafe { (self.functions.reader_get)(self.reader, key.as_ptr(), key.len(), see_value::<R, F>, context) };
            state.1
        }

        #[inline]
        pub(super) fn scan<F: FnMut(&[u8], &[u8]) -> bool>(&mut self, from: &[u8], mut visit: F) {
            let (see, context): (Visit, _) = (see_entry::<F>, (&raw mut visit).cast());
            // SAFETY: above; `see_entry` gets its context.
            unsafe { (self.functions.reader_scan)(self.reader, from.as_ptr(), from.len(), see, context) };
        }
    }

    impl Drop for View<'_> {
        fn drop(&mut self) {
            // SAFETY: above.
            unsafe { (self.functions.reader_close)(self.reader) }
        }
    }

    /// Passes a value to the function of the context, and keeps its result there.
    unsafe extern "C" fn see_value<R, F: FnOnce(&[u8]) -> R>(
        context: *mut c_void,
        _: *const u8,
        _: usize,
        value: *const u8,
        len: usize,
    ) -> c_int {
        // SAFETY: the context is the one of `View::get`, and the value lives during this call.
        let (state, value) = unsafe { (&mut *context.cast::<(Option<F>, Option<R>)>(), bytes(value, len)) };
        state.1 = state.0.take().map(|check| check(value));
        0
    }

    /// Passes an entry to the function of the context.
    unsafe extern "C" fn see_entry<F: FnMut(&[u8], &[u8]) -> bool>(
        context: *mut c_void,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        len: usize,
    ) -> c_int {
        // SAFETY: the context is the one of `View::scan`, and the entry lives during this call.
        unsafe { (*context.cast::<F>())(bytes(key, key_len), bytes(value, len)).into() }
    }

    /// # Safety
    /// `len` bytes are at `start` for as long as the result is used.
    unsafe fn bytes<'a>(start: *const u8, len: usize) -> &'a [u8] {
        match len {
            0 => &[],
            // SAFETY: the caller says so.
            _ => unsafe { std::slice::from_raw_parts(start, len) },
        }
    }
}

#[expect(unsafe_code, reason = "the library is compiled from sources of this folder")]
fn load(path: &Path) -> Result<Functions> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: loading it runs no code but that of the library of the system. It is never unloaded.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    match library.is_null() {
        true => Err(format!("{} cannot be loaded", path.display()).into()),
        false => Functions::of(library),
    }
}

impl<K: Library> Contestant for Linked<K> {
    const NAME: &'static str = K::NAME;

    fn missing() -> Option<String> {
        let compiled = tempfile::tempdir().map_err(Into::into).and_then(|folder| compile(K::NAME, folder.path()));
        compiled.err().map(|cause| {
            let cause = cause.to_string();
            let first = cause.lines().find(|line| line.contains("error") || line.contains("cannot"));
            format!("lib{}-dev is not installed ({})", K::NAME, first.unwrap_or(&cause))
        })
    }

    fn create(config: &Config, folder: &Path) -> Result<Linked<K>> {
        if config.disk == DiskKind::Memory {
            return Err(format!("{} cannot be in memory only", K::NAME).into());
        }
        let compiled = tempfile::tempdir()?;
        let functions = load(&compile(K::NAME, compiled.path())?)?;
        let folder = folder.join(K::NAME);
        std::fs::create_dir(&folder)?;
        let mut linked = Linked {
            functions,
            store: std::ptr::null_mut(),
            durability: config.durability,
            folder,
            synced: Sometimes::default(),
            _compiled: compiled,
            kind: PhantomData,
        };
        linked.open(config)?;
        Ok(linked)
    }

    fn close(&mut self) -> Result<()> {
        calls::close(&self.functions, std::mem::replace(&mut self.store, std::ptr::null_mut()));
        Ok(())
    }

    fn open(&mut self, config: &Config) -> Result<()> {
        self.durability = config.durability;
        let folder = CString::new(self.folder.as_os_str().as_encoded_bytes())?;
        self.store = calls::open(&self.functions, &folder, config);
        Ok(())
    }

    fn commit(&self, changes: &mut dyn FnMut(&mut dyn Writer) -> Result<()>) -> Result<()> {
        let synced = match self.durability {
            Durability::Commit => true,
            Durability::Interval => self.synced.is_due()?,
            Durability::None => false,
        };
        calls::begin(&self.functions, self.store);
        changes(&mut Open { functions: &self.functions, store: self.store })?;
        calls::commit(&self.functions, self.store, synced);
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        calls::compact(&self.functions, self.store);
        Ok(())
    }

    type Reader<'a> = calls::View<'a>;

    fn reader(&self) -> Result<calls::View<'_>> {
        Ok(calls::View::open(self))
    }
}

/// A writing transaction.
struct Open<'a> {
    functions: &'a Functions,
    store: Opaque,
}

impl Writer for Open<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        calls::put(self.functions, self.store, key, value);
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        calls::remove(self.functions, self.store, key);
        Ok(())
    }
}

impl Reader for calls::View<'_> {
    #[inline]
    fn get<R>(&mut self, key: &[u8], check: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(calls::View::get(self, key, check))
    }

    #[inline]
    fn scan(&mut self, from: &[u8], visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        calls::View::scan(self, from, visit);
        Ok(())
    }
}
