//! The two orders of a batch of feature maps.

use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::numbers::Number;
use crate::settings::Layout;

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
