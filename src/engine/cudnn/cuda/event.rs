//! Events on the GPU's streams, and the time between them.

use std::sync::OnceLock;

use super::api::{driver as sys, of_driver};

use super::device::{Gpu, StreamId};
use super::status;
use crate::error::{Error, Result};

/// An event whose time the GPU records, with a resolution of about half a microsecond.
#[derive(Debug)]
pub struct Event(OwnedEvent);

impl Gpu {
    /// A new event, not recorded yet.
    pub fn event(&self) -> Result<Event> {
        // With the time, which cudarc's default leaves out.
        OwnedEvent::new(self, sys::CUevent_flags::CU_EVENT_DEFAULT).map(Event)
    }
}

impl Event {
    /// Records when everything that is on the stream by now is done. While the compute stream is captured into a graph,
    /// the graph records it at every launch.
    pub fn record(&self, id: StreamId) -> Result<()> {
        let OwnedEvent { gpu, event } = &self.0;
        let stream = gpu.stream(id);
        // An ordinary record in a capture would only be an edge of the graph; outside one, the flag is an error.
        let external = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: event and stream live.
        let answer = unsafe {
            match gpu.captures(id) {
                true => sys::cuEventRecordWithFlags(*event, stream, external),
                false => sys::cuEventRecord(*event, stream),
            }
        };
        status::driver("record an event", answer)
    }

    /// Waits on the host until the event has passed. It also fails where earlier work failed.
    pub fn wait(&self) -> Result<()> {
        self.0.gpu.bind()?;
        // SAFETY: the event lives.
        status::driver("wait for an event", unsafe { sys::cuEventSynchronize(self.0.event) })
    }

    /// Seconds from `start` to this event; both have passed.
    pub fn seconds_since(&self, start: &Self) -> Result<f64> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: it writes one float.
        let answer = unsafe { elapsed()?(&raw mut milliseconds, start.0.event, self.0.event) };
        status::driver("report the time between two events", answer)?;
        Ok(seconds(milliseconds))
    }
}

/// An event without a time, with which one stream waits for another. Both streams may be captured into a graph, in
/// which it becomes an edge.
#[derive(Debug)]
pub(super) struct Signal(OwnedEvent);

impl Signal {
    pub fn new(gpu: &Gpu) -> Result<Self> {
        OwnedEvent::new(gpu, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map(Self)
    }

    /// Recorded once everything that is on the stream by now is done.
    pub fn record(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuEventRecord(self.0.event, self.0.gpu.stream(id)) };
        status::driver("record an event", answer)
    }

    /// Makes later work on another stream wait for it.
    pub fn hold(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuStreamWaitEvent(self.0.gpu.stream(id), self.0.event, 0) };
        status::driver("wait for an event on a stream", answer)
    }
}

#[derive(Debug)]
struct OwnedEvent {
    gpu: Gpu,
    event: sys::CUevent,
}

impl OwnedEvent {
    fn new(gpu: &Gpu, flags: sys::CUevent_flags) -> Result<Self> {
        gpu.bind()?;
        let mut event = std::ptr::null_mut();
        // SAFETY: it writes one handle.
        status::driver("create an event", unsafe { sys::cuEventCreate(&raw mut event, flags as u32) })?;
        Ok(Self { gpu: gpu.clone(), event })
    }
}

impl Drop for OwnedEvent {
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

/// The marks of one step, used again for every step.
#[derive(Debug)]
pub struct Timeline([Event; 5]);

impl Timeline {
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self([gpu.event()?, gpu.event()?, gpu.event()?, gpu.event()?, gpu.event()?]))
    }

    /// Records a mark on the compute stream.
    pub fn record(&self, mark: Mark) -> Result<()> {
        self.0[mark as usize].record(StreamId::Compute)
    }

    /// Waits for the end of the step.
    pub fn wait(&self) -> Result<()> {
        self.0[Mark::End as usize].wait()
    }

    /// Seconds between two marks that were recorded and have passed, on the GPU's clock.
    pub fn seconds(&self, from: Mark, to: Mark) -> Result<f64> {
        self.0[to as usize].seconds_since(&self.0[from as usize])
    }
}

/// One event before each call and one after the last, for the times of calls.
#[derive(Debug)]
pub struct Stopwatch {
    events: Vec<Event>,
}

impl Stopwatch {
    /// A stopwatch for `calls` calls.
    pub fn new(gpu: &Gpu, calls: usize) -> Result<Self> {
        Ok(Self { events: (0..=calls).map(|_| gpu.event()).collect::<Result<_>>()? })
    }

    /// Records an event before call `index`, or after the last where `index` is the number of calls.
    pub fn record(&self, index: usize) -> Result<()> {
        let Some(event) = self.events.get(index) else {
            return Err(Error::engine(format!("call {index} of a stopwatch for {}", self.events.len() - 1)));
        };
        event.record(StreamId::Compute)
    }

    /// Waits for the last event and reads the seconds of every call, which include the cost of the events.
    pub fn seconds(&self) -> Result<Vec<f64>> {
        if let Some(last) = self.events.last() {
            last.wait()?;
        }
        self.events.windows(2).map(|pair| pair[1].seconds_since(&pair[0])).collect()
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
