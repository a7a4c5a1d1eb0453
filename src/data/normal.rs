//! From bytes to numbers of mean 0 and standard deviation 1.

use super::Labelled;

/// The mean and the standard deviation of each channel, where a byte of 255 is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    pub mean: Vec<f32>,
    pub sd: Vec<f32>,
}

impl Normal {
    /// Maps 0 to -1 and 1 to 1, in every channel.
    pub fn symmetric(channels: usize) -> Self {
        Self { mean: vec![0.5; channels], sd: vec![0.5; channels] }
    }

    /// The mean and standard deviation of all pixels of a set, for each channel; a constant channel gets the standard deviation 1.
    pub fn of(set: &Labelled, channels: usize) -> Self {
        let plane = set.each() / channels.max(1);
        let mut normal = Self { mean: Vec::new(), sd: Vec::new() };
        for channel in 0..channels {
            // Sums of integers are exact.
            let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
            for image in set.pixels.chunks_exact(set.each().max(1)) {
                for &byte in &image[channel * plane..][..plane] {
                    count += 1;
                    sum += u64::from(byte);
                    squares += u64::from(byte) * u64::from(byte);
                }
            }
            let mean = sum as f64 / count.max(1) as f64;
            let variance = squares as f64 / count.max(1) as f64 - mean * mean;
            normal.mean.push((mean / 255.0) as f32);
            normal.sd.push(if variance > 0.0 { (variance.sqrt() / 255.0) as f32 } else { 1.0 });
        }
        normal
    }

    /// Normalises one image: C x H x W bytes to as many numbers.
    pub fn apply(&self, bytes: &[u8], to: &mut [f32]) {
        let plane = (bytes.len() / self.mean.len().max(1)).max(1);
        let channels = bytes.chunks_exact(plane).zip(to.chunks_exact_mut(plane));
        for ((bytes, to), (mean, sd)) in channels.zip(self.mean.iter().zip(&self.sd)) {
            let (scale, shift) = (1.0 / (255.0 * sd), -mean / sd);
            bytes.iter().zip(to).for_each(|(byte, to)| *to = f32::from(*byte) * scale + shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_has_its_own_mean_and_deviation() {
        // Two images of two channels with two pixels each; by hand: channel 0 is 0, 255, 0, 255, channel 1 is 51 throughout.
        let pixels = vec![0, 255, 51, 51, 0, 255, 51, 51];
        let set = Labelled { name: String::new(), pixels, labels: vec![0, 1] };
        let normal = Normal::of(&set, 2);
        assert_eq!((normal.mean.as_slice(), normal.sd.as_slice()), ([0.5, 0.2].as_slice(), [0.5, 1.0].as_slice()));
        let mut to = [0.0; 4];
        normal.apply(&set.pixels[..4], &mut to);
        assert!((to[0] + 1.0).abs() < 1e-6 && (to[1] - 1.0).abs() < 1e-6 && to[2].abs() < 1e-6, "{to:?}");
    }
}
