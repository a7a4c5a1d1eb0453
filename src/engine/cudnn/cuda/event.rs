//! Events on the GPU's streams, and the time between them.

use std::sync::OnceLock;

use super::api::{driver as sys, of_driver};

use super::device::{Gpu, StreamId};
use super::status;
use crate::error::{Error, Result};

/// An event on a stream.
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    event: sys::CUevent,
}

impl Gpu {
    /// An event whose time the GPU records, with a resolution of about half a microsecond. cudarc's default leaves the
    /// time out.
    pub fn event(&self) -> Result<Event> {
        self.new_event(sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event without a time, with which one stream waits for another. Both streams may be captured into a graph, in
    /// which it becomes an edge.
    pub(super) fn signal(&self) -> Result<Event> {
        self.new_event(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn new_event(&self, flags: sys::CUevent_flags) -> Result<Event> {
        self.bind()?;
        let mut event = std::ptr::null_mut();
        // SAFETY: it writes one handle.
        status::driver("create an event", unsafe { sys::cuEventCreate(&raw mut event, flags as u32) })?;
        Ok(Event { gpu: self.clone(), event })
    }
}

impl Event {
    /// Records when everything that is on the stream by now is done. While the compute stream is captured into a graph,
    /// the graph records it at every launch.
    pub fn record(&self, id: StreamId) -> Result<()> {
        if !self.gpu.captures(id) {
            return self.note(id);
        }
        // An ordinary record in a capture would only be an edge of the graph; outside one, the flag is an error.
        let external = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuEventRecordWithFlags(self.event, self.gpu.stream(id), external) };
        status::driver("record an event", answer)
    }

    /// Passes once everything that is on the stream by now is done, also within a graph.
    pub(super) fn note(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        status::driver("record an event", unsafe { sys::cuEventRecord(self.event, self.gpu.stream(id)) })
    }

    /// Makes later work on another stream wait for it.
    pub(super) fn hold(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuStreamWaitEvent(self.gpu.stream(id), self.event, 0) };
        status::driver("wait for an event on a stream", answer)
    }

    /// Waits on the host until the event has passed. It also fails where earlier work failed.
    pub fn wait(&self) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: the event lives.
        status::driver("wait for an event", unsafe { sys::cuEventSynchronize(self.event) })
    }

    /// Seconds from `start` to this event; both have a time and have passed.
    pub fn seconds_since(&self, start: &Self) -> Result<f64> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: it writes one float.
        let answer = unsafe { elapsed()?(&raw mut milliseconds, start.event, self.event) };
        status::driver("report the time between two events", answer)?;
        Ok(seconds(milliseconds))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let destroyed = self.gpu.make_current().and_then(|()| {
            // SAFETY: created once, destroyed once.
            status::driver("destroy an event", unsafe { sys::cuEventDestroy_v2(self.event) })
        });
        self.gpu.defer(destroyed);
    }
}

/// The marks of a step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Start,
    AfterHostToDevice,
    AfterForward,
    AfterBackward,
    End,
}

/// Events of the compute stream, in the order in which they pass; used again for every step.
#[derive(Debug)]
pub struct Timeline(Vec<Event>);

impl Timeline {
    pub fn new(gpu: &Gpu, events: usize) -> Result<Self> {
        (0..events).map(|_| gpu.event()).collect::<Result<_>>().map(Self)
    }

    /// The marks of a step.
    pub fn of_step(gpu: &Gpu) -> Result<Self> {
        Self::new(gpu, Mark::End as usize + 1)
    }

    pub fn record(&self, index: usize) -> Result<()> {
        self.0[index].record(StreamId::Compute)
    }

    /// Waits for the last.
    pub fn wait(&self) -> Result<()> {
        self.0.last().map_or(Ok(()), Event::wait)
    }

    /// Seconds between two events that were recorded and have passed, on the GPU's clock.
    pub fn seconds(&self, from: usize, to: usize) -> Result<f64> {
        self.0[to].seconds_since(&self.0[from])
    }
}

type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// cuEventElapsedTime. The bindings have only its second version, which needs CUDA 12.8; here a driver of 12.0
/// suffices.
fn elapsed() -> Result<Elapsed> {
    static FOUND: OnceLock<Option<Elapsed>> = OnceLock::new();
    let find = || {
        // SAFETY: both versions have this signature, in cuda.h.
        unsafe { of_driver::<Elapsed>(b"cuEventElapsedTime_v2\0").or_else(|| of_driver(b"cuEventElapsedTime\0")) }
    };
    FOUND.get_or_init(find).ok_or_else(|| Error::engine("the CUDA driver lacks cuEventElapsedTime"))
}

/// The driver gives milliseconds as a float32. It is read as the nearest decimal number, so that 0.1 ms is 1e-4 s and
/// not 1.00000001e-4.
fn seconds(milliseconds: f32) -> f64 {
    milliseconds.to_string().parse::<f64>().unwrap_or(f64::NAN) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_seconds_without_float32s_tail() {
        assert_eq!(seconds(0.1), 1e-4);
        assert_eq!(seconds(12.345), 0.012345);
        assert_eq!(seconds(0.0), 0.0);
    }
}
