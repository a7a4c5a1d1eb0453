//! The two orders of a batch of feature maps.

use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::settings::Layout;

/// From the order of their layout to N, C, H, W.
pub fn to_nchw<V: Copy>(values: &[V], maps: FeatureMaps) -> Vec<V> {
    each_map(values, maps, maps.positions(), maps.channels)
}

/// From N, C, H, W to the order of their layout.
pub fn from_nchw<V: Copy>(values: &[V], maps: FeatureMaps) -> Vec<V> {
    each_map(values, maps, maps.channels, maps.positions())
}

fn each_map<V: Copy>(values: &[V], maps: FeatureMaps, rows: usize, columns: usize) -> Vec<V> {
    match maps.layout {
        Layout::Nchw => values.to_vec(),
        Layout::Nhwc => values.chunks(rows * columns).flat_map(|map| transposed(map, rows, columns)).collect(),
    }
}

/// rows x columns becomes columns x rows.
pub fn transposed<V: Copy>(values: &[V], rows: usize, columns: usize) -> Vec<V> {
    (0..values.len()).map(|i| values[i % rows * columns + i / rows]).collect()
}
