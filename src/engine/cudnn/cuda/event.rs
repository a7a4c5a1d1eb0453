//! Events on the GPU's streams, and the time between them.

use std::sync::OnceLock;

use super::api::{driver as sys, of_driver};

use super::device::{Gpu, StreamId};
use super::status;
use crate::error::{Error, Result};

/// An event whose time the GPU records, with a resolution of about half a microsecond.
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    event: sys::CUevent,
}

impl Gpu {
    /// A new event, not recorded yet.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn event(&self) -> Result<Event> {
        self.bind()?;
        let mut event = std::ptr::null_mut();
        // CU_EVENT_DEFAULT: with the time, which cudarc's default leaves out. SAFETY: it writes one handle.
        let answer = unsafe { sys::cuEventCreate(&raw mut event, sys::CUevent_flags::CU_EVENT_DEFAULT as u32) };
        status::driver("create an event", answer)?;
        Ok(Event { gpu: self.clone(), event })
    }
}

impl Event {
    /// Records when everything that is on the stream by now is done. While the compute stream is captured into a graph,
    /// the graph records it at every launch.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn record(&self, id: StreamId) -> Result<()> {
        let stream = self.gpu.stream(id);
        // An ordinary record in a capture would only be an edge of the graph; outside one, the flag is an error.
        let external = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: event and stream live.
        let answer = unsafe {
            match self.gpu.captures(id) {
                true => sys::cuEventRecordWithFlags(self.event, stream, external),
                false => sys::cuEventRecord(self.event, stream),
            }
        };
        status::driver("record an event", answer)
    }

    /// Makes later work on the stream wait for this event, which was recorded on another stream.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn hold(&self, id: StreamId) -> Result<()> {
        let external = sys::CUevent_wait_flags::CU_EVENT_WAIT_EXTERNAL as u32;
        let flags = if self.gpu.captures(id) { external } else { 0 };
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuStreamWaitEvent(self.gpu.stream(id), self.event, flags) };
        status::driver("wait for an event on a stream", answer)
    }

    /// Waits on the host until the event has passed.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`]: also the failure of earlier work.
    pub fn wait(&self) -> Result<()> {
        self.gpu.bind()?;
        // SAFETY: the event lives.
        status::driver("wait for an event", unsafe { sys::cuEventSynchronize(self.event) })
    }

    /// Seconds from `start` to this event; both have passed.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where one was not recorded, or has not passed.
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
        destroy(&self.gpu, self.event);
    }
}

/// An event without a time, with which one stream waits for another. Both streams may be captured into a graph, in
/// which it becomes an edge.
#[derive(Debug)]
pub(super) struct Signal {
    gpu: Gpu,
    event: sys::CUevent,
}

impl Signal {
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn new(gpu: &Gpu) -> Result<Self> {
        gpu.bind()?;
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: it writes one handle.
        status::driver("create an event", unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(Self { gpu: gpu.clone(), event })
    }

    /// Recorded once everything that is on the stream by now is done.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn record(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuEventRecord(self.event, self.gpu.stream(id)) };
        status::driver("record an event", answer)
    }

    /// Makes later work on another stream wait for it.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn hold(&self, id: StreamId) -> Result<()> {
        // SAFETY: event and stream live.
        let answer = unsafe { sys::cuStreamWaitEvent(self.gpu.stream(id), self.event, 0) };
        status::driver("wait for an event on a stream", answer)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        destroy(&self.gpu, self.event);
    }
}

fn destroy(gpu: &Gpu, event: sys::CUevent) {
    let destroyed = gpu.make_current().and_then(|()| {
        // SAFETY: created once, destroyed once.
        status::driver("destroy an event", unsafe { sys::cuEventDestroy_v2(event) })
    });
    gpu.defer(destroyed);
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

/// Seconds of a step's parts, on the GPU's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseTimes {
    pub host_to_device: f64,
    pub forward: f64,
    pub backward: f64,
    pub optimizer: f64,
    /// From the first mark to the last, as one reading: the sum of the parts, up to rounding.
    pub whole: f64,
}

/// The marks of one step, used again for every step.
#[derive(Debug)]
pub struct Timeline {
    events: [Event; 5],
}

impl Timeline {
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self { events: [gpu.event()?, gpu.event()?, gpu.event()?, gpu.event()?, gpu.event()?] })
    }

    /// Records a mark on the compute stream.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn record(&self, mark: Mark) -> Result<()> {
        self.event(mark).record(StreamId::Compute)
    }

    /// The event of a mark.
    pub fn event(&self, mark: Mark) -> &Event {
        &self.events[mark as usize]
    }

    /// Waits for the end of the step and reads its times. All five marks must have been recorded.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn phases(&self) -> Result<PhaseTimes> {
        self.event(Mark::End).wait()?;
        let part = |from: Mark, to: Mark| self.event(to).seconds_since(self.event(from));
        Ok(PhaseTimes {
            host_to_device: part(Mark::Start, Mark::AfterHostToDevice)?,
            forward: part(Mark::AfterHostToDevice, Mark::AfterForward)?,
            backward: part(Mark::AfterForward, Mark::AfterBackward)?,
            optimizer: part(Mark::AfterBackward, Mark::End)?,
            whole: part(Mark::Start, Mark::End)?,
        })
    }
}

/// One event before each call and one after the last, for the times of calls.
#[derive(Debug)]
pub struct Stopwatch {
    events: Vec<Event>,
}

impl Stopwatch {
    /// A stopwatch for `calls` calls.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn new(gpu: &Gpu, calls: usize) -> Result<Self> {
        Ok(Self { events: (0..=calls).map(|_| gpu.event()).collect::<Result<_>>()? })
    }

    /// Records an event before call `index`, or after the last where `index` is the number of calls.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] also where the stopwatch was made for fewer calls.
    pub fn record(&self, index: usize) -> Result<()> {
        let Some(event) = self.events.get(index) else {
            return Err(Error::engine(format!("call {index} of a stopwatch for {}", self.events.len() - 1)));
        };
        event.record(StreamId::Compute)
    }

    /// Waits for the last event and reads the seconds of every call, which include the cost of the events.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where an event was not recorded.
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

    #[test]
    fn marks_have_the_order_of_a_step() {
        assert!(Mark::Start < Mark::AfterHostToDevice && Mark::AfterBackward < Mark::End);
        assert_eq!(Mark::End as usize, 4);
    }
}
