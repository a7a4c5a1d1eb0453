//! The two orders of a batch of feature maps.

use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::numbers::{Number, widened};
use crate::engine::reference::array::Array;
use crate::settings::Layout;

/// Numbers in the order N, C, H, W, as the reference engine takes them.
pub fn array(values: &[f32], maps: FeatureMaps) -> Array {
    let FeatureMaps { batch, channels, height, width, .. } = maps;
    Array { batch, channels, height, width, values: widened(values) }
}

/// From the order of their layout to N, C, H, W.
pub fn to_nchw<V: Number>(values: &[V], maps: FeatureMaps) -> Vec<V> {
    each_map(values, maps, [maps.positions(), maps.channels])
}

/// From N, C, H, W to the order of their layout.
pub fn from_nchw<V: Number>(values: &[V], maps: FeatureMaps) -> Vec<V> {
    each_map(values, maps, [maps.channels, maps.positions()])
}

fn each_map<V: Number>(values: &[V], maps: FeatureMaps, [rows, columns]: [usize; 2]) -> Vec<V> {
    match maps.layout {
        Layout::Nchw => values.to_vec(),
        Layout::Nhwc => V::transposed(values, rows, columns),
    }
}
