//! Transformation matrices.

use super::layout::Point;
use super::object::Object;

/// A linear map and a shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matrix(pub(super) [f64; 6]);

impl Default for Matrix {
    fn default() -> Self {
        Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    }
}

impl Matrix {
    /// From six operands; missing ones are 0, and without any it is the identity.
    pub(super) fn from_operands(operands: &[Object]) -> Self {
        if operands.len() < 6 {
            return Self::default();
        }
        let mut numbers = [0.0; 6];
        for (number, operand) in numbers.iter_mut().zip(operands) {
            *number = operand.number().unwrap_or(0.0);
        }
        Self(numbers)
    }

    pub(super) fn shift(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// This transformation followed by `next`.
    pub(super) fn then(&self, next: &Self) -> Self {
        let [a, b, c, d, e, f] = self.0;
        let [k, l, m, n, o, p] = next.0;
        Self([
            a * k + b * m,
            a * l + b * n,
            c * k + d * m,
            c * l + d * n,
            e * k + f * m + o,
            e * l + f * n + p,
        ])
    }

    /// Transforms a point.
    pub(super) fn place(&self, (x, y): Point) -> Point {
        let [a, b, c, d, e, f] = self.0;
        (x * a + y * c + e, x * b + y * d + f)
    }

    /// The directions of the axes, of length 1, and the length of the second.
    pub(super) fn axes(&self) -> (Point, Point, f64) {
        let [a, b, c, d, ..] = self.0;
        let unit = |x: f64, y: f64, otherwise: Point| {
            let length = x.hypot(y);
            if length > 0.0 && length.is_finite() { (x / length, y / length) } else { otherwise }
        };
        (unit(a, b, (1.0, 0.0)), unit(c, d, (0.0, 1.0)), c.hypot(d))
    }
}
