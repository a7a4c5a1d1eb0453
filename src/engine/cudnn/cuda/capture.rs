//! A part of a step as one CUDA graph, captured once and launched as often as wanted.

use super::api::driver as sys;

use super::device::{Gpu, StreamId};
use super::status;
use crate::error::{Error, Result};

/// A captured sequence of calls of the compute stream.
#[derive(Debug)]
pub struct Graph {
    gpu: Gpu,
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: usize,
}

impl Gpu {
    /// Captures what `enqueue` puts on the compute stream, ready to be launched; nothing runs. The same calls must have
    /// run once before without a graph: libraries load their kernels at their first call, which is not allowed while a
    /// stream is captured.
    ///
    /// # Errors
    /// What `enqueue` fails with; [`crate::error::Kind::Engine`] where something cannot be captured. The stream is usable
    /// again afterwards in either case.
    pub fn capture(&self, enqueue: impl FnOnce() -> Result<()>) -> Result<Graph> {
        self.synchronize(StreamId::Compute)?;
        let mut made = self.record(enqueue).map_err(|error| uncapturable(&error))?;
        // SAFETY: a graph; it writes one handle.
        let answer = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut made.executable, made.graph, 0) };
        status::driver("make a graph executable", answer).map_err(|error| uncapturable(&error))?;
        // SAFETY: an executable graph. Without this the first launch would bring it to the GPU.
        let answer = unsafe { sys::cuGraphUpload(made.executable, self.stream(StreamId::Compute)) };
        status::driver("upload a graph", answer)?;
        self.synchronize(StreamId::Compute)?;
        Ok(made)
    }

    /// The same, not yet executable: to examine its nodes.
    pub(super) fn record(&self, enqueue: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let stream = self.stream(StreamId::Compute);
        // Thread-local: what other threads do (a monitor, a writer) does not affect the capture.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives; what is on it already is not part of the graph.
        status::driver("begin a graph", unsafe { sys::cuStreamBeginCapture_v2(stream, mode) })?;
        self.shared.capturing.set(true);
        let enqueued = enqueue();
        self.shared.capturing.set(false);
        let mut graph = std::ptr::null_mut();
        // Also after a failure: until the capture ends the stream accepts no other work. SAFETY: it writes one handle,
        // null where the capture has failed.
        let ended = status::driver("end a graph", unsafe { sys::cuStreamEndCapture(stream, &raw mut graph) });
        let mut made = Graph { gpu: self.clone(), graph, executable: std::ptr::null_mut(), nodes: 0 };
        enqueued?;
        ended?;
        if made.graph.is_null() {
            return Err(Error::engine("the driver gave no graph"));
        }
        // SAFETY: a graph; a null pointer asks only for the number of nodes.
        let answer = unsafe { sys::cuGraphGetNodes(made.graph, std::ptr::null_mut(), &raw mut made.nodes) };
        status::driver("count the nodes of a graph", answer)?;
        Ok(made)
    }
}

fn uncapturable(error: &Error) -> Error {
    let what = format!("this step cannot be one CUDA graph: {}", error.clause());
    let eager = "run it with `launch = \"eager\"` in [engine]";
    let refused = Error::new(error.kind(), what).hint(match error.remedy() {
        Some(own) if !own.contains("eager") => format!("{own}; without a graph: {eager}"),
        _ => eager.to_owned(),
    });
    if error.is_no_kernels_fault() { refused.no_kernels_fault() } else { refused }
}

impl Graph {
    /// Starts it on the compute stream.
    pub fn launch(&self) -> Result<()> {
        // SAFETY: graph and stream live.
        let answer = unsafe { sys::cuGraphLaunch(self.executable, self.gpu.stream(StreamId::Compute)) };
        status::driver("launch a graph", answer)
    }

    /// The nodes, in the driver's order. They live as long as the graph.
    pub(super) fn handles(&self) -> Result<Vec<sys::CUgraphNode>> {
        let mut count = self.nodes;
        let mut nodes = vec![std::ptr::null_mut(); count];
        // SAFETY: a graph; room for `count` nodes, and it writes how many it has given.
        let answer = unsafe { sys::cuGraphGetNodes(self.graph, nodes.as_mut_ptr(), &raw mut count) };
        status::driver("list the nodes of a graph", answer)?;
        nodes.truncate(count);
        Ok(nodes)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let destroyed = self.gpu.make_current().and_then(|()| {
            // SAFETY: each was made once, and is destroyed once. A graph that runs is destroyed when it is done.
            unsafe {
                if !self.executable.is_null() {
                    status::driver("destroy an executable graph", sys::cuGraphExecDestroy(self.executable))?;
                }
                match self.graph.is_null() {
                    true => Ok(()),
                    false => status::driver("destroy a graph", sys::cuGraphDestroy(self.graph)),
                }
            }
        });
        self.gpu.defer(destroyed);
    }
}
