//! Permanent redirects: followed at once, and adopted as the new address after several confirmations.

use url::Url;

/// How often a permanent redirect has to be seen before its target replaces the address.
pub const SURE_AFTER: u32 = 3;

/// Where the permanent redirects of a document lead, and in how many successive fetches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub to: Option<Url>,
    pub count: u32,
}

impl Moved {
    /// Records a successful fetch and where its permanent redirects led; returns the new address once, when it is
    /// confirmed.
    pub fn sight(&mut self, to: Option<&Url>) -> Option<Url> {
        let Some(to) = to else {
            *self = Self::default();
            return None;
        };
        let is_same = self.to.as_ref() == Some(to);
        self.count = if is_same { self.count.saturating_add(1) } else { 1 };
        self.to = Some(to.clone());
        (self.count == SURE_AFTER).then(|| to.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_sure_once_when_it_was_seen_three_times_in_a_row() {
        let (a, b) = (Url::parse("https://a.example/").unwrap(), Url::parse("https://b.example/").unwrap());
        let mut moved = Moved::default();
        let steps = [Some(&a), Some(&a), None, Some(&a), Some(&b), Some(&b), Some(&b), Some(&b)];
        let sure: Vec<bool> = steps.into_iter().map(|to| moved.sight(to).is_some()).collect();
        assert_eq!(sure, [false, false, false, false, false, false, true, false]);
    }
}
