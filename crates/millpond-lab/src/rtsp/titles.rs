//! Which URLs clients play, and how often each.

use fastrand::Rng;
use url::Url;

/// The most URLs that one pattern may stand for.
const MOST: u64 = 1_000_000;

/// Writes out the first `{FROM..TO}` of a URL: `rtsp://h/{1..3}.mp4` are three. Zeros in front keep their width. Without
/// braces it is one.
///
/// # Errors
/// The braces hold something else, or stand for too many; the sentence says it.
pub fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, (inside, after))) =
        pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return Ok(vec![pattern.to_owned()]);
    };
    let wrong = || format!("{pattern}: expected numbers in braces, such as {{1..100}}, not {{{inside}}}");
    let (from, to) = inside.split_once("..").ok_or_else(wrong)?;
    let width = if from.starts_with('0') { from.len() } else { 0 };
    let (Ok(from), Ok(to)) = (from.parse::<u64>(), to.parse::<u64>()) else { return Err(wrong()) };
    if from > to || to - from >= MOST {
        return Err(format!("{pattern}: expected 1 to {MOST} numbers in the braces"));
    }
    Ok((from..=to).map(|number| format!("{before}{number:0width$}{after}")).collect())
}

/// The URLs of a run, with how likely each one is.
#[derive(Clone, Debug)]
pub(crate) struct Titles {
    urls: Vec<Url>,
    /// Of the sum of all weights, what those up to each one have.
    shares: Vec<f64>,
}

impl Titles {
    /// The URL of rank n is asked for in proportion to 1/n^`skew`: 0 makes all equal.
    pub(crate) fn new(urls: Vec<Url>, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut shares: Vec<f64> = (1..=urls.len())
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Self { urls, shares }
    }

    /// One of them; none only where there are none.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<&Url> {
        let at = rng.f64();
        let place = self.shares.partition_point(|share| *share <= at);
        self.urls.get(place).or(self.urls.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_written_out() {
        assert_eq!(expand("rtsp://h/a.mp4"), Ok(vec!["rtsp://h/a.mp4".to_owned()]));
        assert_eq!(expand("rtsp://h/{1..3}.mp4"), Ok([1, 2, 3].map(|n| format!("rtsp://h/{n}.mp4")).to_vec()));
        assert_eq!(expand("{008..010}"), Ok(["008", "009", "010"].map(str::to_owned).to_vec()));
        for wrong in ["{1}", "{a..b}", "{3..1}", "{1..99999999}", "{}"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_are_drawn_as_often_as_their_rank_says() {
        let url = |n: usize| Url::parse(&format!("rtsp://h/{n}")).unwrap();
        let mut rng = Rng::with_seed(1);
        for (skew, first) in [(0.0, 0.1), (1.0, 0.3414)] {
            let titles = Titles::new((0..10).map(url).collect(), skew);
            let hits = (0..100_000).filter(|_| titles.draw(&mut rng) == Some(&url(0))).count();
            assert!((hits as f64 / 1e5 - first).abs() < 0.01, "{skew}: {hits}");
        }
        assert_eq!(Titles::new(Vec::new(), 1.0).draw(&mut rng), None);
    }
}
