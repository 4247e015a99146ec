//! Pages that belong to no pipeline.

mod deliveries;
pub(super) mod quotas;

use super::Page;

/// In the order of the navigation, behind those of the pipelines.
pub const PAGES: &[&Page] = &[&deliveries::PAGE, &quotas::PAGE];
