//! What single values do: bit fields, floating point, conversions.

pub mod approx;
pub mod bits;
pub mod convert;
pub mod float;
pub mod half;
pub mod soft;
