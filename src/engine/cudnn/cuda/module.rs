//! Our own kernels, compiled and loaded when a step first needs them.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::rc::Rc;

use super::api::driver as sys;
use sys::CUfunction_attribute as Attribute;

use super::argument::Arguments;
use super::compiler::{self, CompileTarget};
use super::properties::Properties;
use super::status;
use crate::engine::cudnn::call::{Kernel, Launch};
use crate::engine::cudnn::element::Element;
use crate::error::{Error, Result};
use crate::os::cache::Cache;

/// The whole source of an operator's kernels for an element type; `None` where there is no such operator.
pub type SourceOf = fn(operator: &str, element: Element) -> Option<String>;

/// The kernels of one GPU.
pub(super) struct Modules {
    source: SourceOf,
    cache: Cache,
    target: CompileTarget,
    compiler_version: String,
    shared_bytes_per_block: u64,
    /// cuFuncLoad and cuFuncGetParamInfo came with CUDA 12.4; calling a function that the driver lacks would end the
    /// program.
    driver_reports_parameters: bool,
    loaded: HashMap<(&'static str, Element), Rc<Module>>,
}

/// A loaded kernel, and the sizes of its parameters.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub handle: sys::CUfunction,
    max_threads: u32,
    /// The bytes of each parameter, where the driver reports them.
    parameters: Option<Vec<usize>>,
    _module: Rc<Module>,
}

owned!(Module, sys::CUmodule, sys::cuModuleUnload);

/// What compiled code depends on.
fn key<'a>(source: &'a str, options: &'a [String], compiler: &'a str) -> Vec<&'a str> {
    options.iter().map(String::as_str).chain([compiler, source]).collect()
}

impl Modules {
    /// No kernels are loaded yet.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where NVRTC does not compile for this GPU.
    pub fn new(properties: &Properties, source: SourceOf) -> Result<Self> {
        Ok(Self {
            source,
            cache: Cache::of_user("kernels", &|name| std::env::var_os(name)),
            target: CompileTarget::choose(properties.architecture(), &compiler::supported_architectures()?)?,
            compiler_version: properties.nvrtc.clone().unwrap_or_default(),
            shared_bytes_per_block: properties.shared_bytes_per_block,
            driver_reports_parameters: properties.driver_cuda >= (12, 4),
            loaded: HashMap::new(),
        })
    }

    /// Loads those of these modules that are not loaded: from the cache, or compiled, each in its own thread, since
    /// NVRTC takes ten seconds for an operator with many variants. A cached file that does not load is compiled again.
    pub fn load(&mut self, wanted: &BTreeSet<(&'static str, Element)>) -> Result<()> {
        let (target, compiler) = (self.target, &self.compiler_version);
        let name = |operator: &str, element: Element| format!("{operator} ({})", element.name());
        let mut missing = Vec::new();
        for &(operator, element) in wanted {
            if self.loaded.contains_key(&(operator, element)) {
                continue;
            }
            let source = self.source(operator, element)?;
            let options = compiler::options(element, target);
            let kept = self.cache.get(&key(&source, &options, compiler));
            match kept.and_then(|code| Module::load(&name(operator, element), &code).ok()) {
                Some(module) => drop(self.loaded.insert((operator, element), Rc::new(module))),
                None => missing.push((operator, element, source, options)),
            }
        }
        let codes: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
            let started: Vec<_> = missing
                .iter()
                .map(|(operator, element, source, _)| {
                    scope.spawn(move || compiler::compile(operator, source, *element, target))
                })
                .collect();
            let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<Vec<u8>>>| {
                thread.join().unwrap_or_else(|_| Err(Error::engine("NVRTC's thread died").no_kernels_fault()))
            };
            started.into_iter().map(ended).collect()
        });
        for ((operator, element, source, options), code) in missing.iter().zip(codes) {
            let code = code?;
            let module = Module::load(&name(operator, *element), &code)?;
            self.cache.put(&key(source, options, compiler), &code);
            self.loaded.insert((operator, *element), Rc::new(module));
        }
        Ok(())
    }

    fn source(&self, operator: &str, element: Element) -> Result<String> {
        let missing = || Error::engine(format!("there are no kernels for the operator `{operator}`"));
        (self.source)(operator, element).ok_or_else(missing)
    }

    /// A kernel of a loaded module, ready for launches with that much dynamic shared memory.
    pub fn function(&self, kernel: Kernel, shared_bytes: u32) -> Result<Function> {
        let loaded = self.loaded.get(&(kernel.operator, kernel.element));
        let module = loaded.cloned().ok_or_else(|| Error::engine(format!("{} is not loaded", kernel.operator)))?;
        let name = format!("the kernel {} of {} ({})", kernel.name, kernel.operator, kernel.element.name());
        let symbol = CString::new(kernel.name).map_err(|_| Error::engine(format!("{name} has a zero in its name")))?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the module is loaded; it writes one handle.
        let answer = unsafe { sys::cuModuleGetFunction(&raw mut handle, module.0, symbol.as_ptr()) };
        status::driver(format_args!("find {name}"), answer)?;
        if shared_bytes > 48 << 10 {
            self.allow_shared(handle, shared_bytes, &name)?;
        }
        let parameters = match self.driver_reports_parameters {
            true => {
                // SAFETY: a function of a loaded module. Without this, lazy loading would load it at its first launch.
                status::driver(format_args!("load {name}"), unsafe { sys::cuFuncLoad(handle) })?;
                Some(parameters(handle, &name)?)
            }
            false => None,
        };
        let mut threads = 0;
        // SAFETY: it writes one int.
        let answer = unsafe {
            sys::cuFuncGetAttribute(&raw mut threads, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, handle)
        };
        status::driver(format_args!("report how many threads {name} can have"), answer)?;
        let max_threads = u32::try_from(threads).unwrap_or(0);
        Ok(Function { handle, max_threads, parameters, _module: module })
    }

    /// Above 48 KiB, dynamic shared memory must be allowed for each kernel.
    fn allow_shared(&self, function: sys::CUfunction, bytes: u32, name: &str) -> Result<()> {
        if u64::from(bytes) > self.shared_bytes_per_block {
            let most = self.shared_bytes_per_block;
            return Err(Error::engine(format!("{name} needs {bytes} bytes of shared memory; this GPU has {most}")));
        }
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: a function of a loaded module.
        let answer = unsafe { sys::cuFuncSetAttribute(function, attribute, value) };
        status::driver(format_args!("give {name} {bytes} bytes of shared memory"), answer)
    }
}

impl Module {
    fn load(name: &str, code: &[u8]) -> Result<Self> {
        let mut module = std::ptr::null_mut();
        // SAFETY: an ELF file, or PTX that ends with a zero; the driver copies what it needs.
        let answer = unsafe { sys::cuModuleLoadData(&raw mut module, code.as_ptr().cast()) };
        status::driver(format_args!("load the kernels of {name}"), answer)?;
        Ok(Self(module))
    }
}

/// The bytes of each parameter, as the compiled kernel has them.
fn parameters(function: sys::CUfunction, name: &str) -> Result<Vec<usize>> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: it writes two size_t.
        let answer = unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &raw mut offset, &raw mut size) };
        match answer {
            // Past the last parameter.
            sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
            other => status::driver(format_args!("report the parameters of {name}"), other)?,
        }
        sizes.push(size);
    }
}

impl Function {
    /// Fails where a launch does not fit its kernel.
    pub fn check(&self, launch: &Launch, arguments: &Arguments) -> Result<()> {
        check(launch, arguments.sizes(), self.max_threads, self.parameters.as_deref())
    }
}

/// Limits of every GPU since compute capability 3.0: CUDA programming guide, technical specifications.
fn check(launch: &Launch, sizes: &[usize], max_threads: u32, parameters: Option<&[usize]>) -> Result<()> {
    let Launch { kernel, grid, block, .. } = launch;
    let wrong = |why: String| {
        let name = format!("{} of {} ({})", kernel.name, kernel.operator, kernel.element.name());
        Err(Error::engine(format!("the launch of {name} is wrong: {why}")))
    };
    if let Some(parameters) = parameters
        && parameters != sizes
    {
        return wrong(format!("the kernel's parameters have {parameters:?} bytes, the arguments {sizes:?}"));
    }
    let blocks_fit = (1..=2_147_483_647).contains(&grid[0]) && grid[1..].iter().all(|n| (1..=65_535).contains(n));
    if !blocks_fit {
        return wrong(format!("{} x {} x {} blocks", grid[0], grid[1], grid[2]));
    }
    let threads = block.iter().map(|n| u64::from(*n)).product::<u64>();
    if threads == 0 || threads > u64::from(max_threads) || block[2] > 64 {
        let [x, y, z] = block;
        return wrong(format!("{x} x {y} x {z} threads in a block, where {max_threads} are the most"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(grid: [u32; 3], block: [u32; 3]) -> Launch {
        let kernel = Kernel { operator: "pool", name: "max_pool", element: Element::F16 };
        Launch { kernel, grid, block, shared_bytes: 0, args: Vec::new() }
    }

    #[test]
    fn a_wrong_launch_names_the_kernel_and_the_limit() {
        let widest = launch([2_147_483_647, 65_535, 65_535], [256, 2, 2]);
        for parameters in [Some(&[8, 4][..]), None] {
            assert!(check(&widest, &[8, 4], 1024, parameters).is_ok());
        }
        let sizes = [8, 8, 4];
        for (launch, sizes, words) in [
            (launch([1, 1, 1], [256, 1, 1]), &[8, 4][..], "max_pool of pool (f16)"),
            (launch([1, 1, 1], [256, 1, 1]), &[8, 4], "[8, 8, 4] bytes, the arguments [8, 4]"),
            (launch([0, 1, 1], [256, 1, 1]), &sizes, "0 x 1 x 1 blocks"),
            (launch([1, 65_536, 1], [256, 1, 1]), &sizes, "65536"),
            (launch([1, 1, 1], [1024, 1, 1]), &sizes, "512 are the most"),
            (launch([1, 1, 1], [0, 1, 1]), &sizes, "threads"),
            (launch([1, 1, 1], [1, 1, 65]), &sizes, "65 threads"),
        ] {
            let text = check(&launch, sizes, 512, Some(&[8, 8, 4])).unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
