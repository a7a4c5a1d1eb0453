//! The noise of a simulated machine.

use crate::settings::named;

named! {
    /// What is added to the true step time.
    Noise {
        /// Steps scatter by 0.5 %, visits by 1 %.
        Normal = "normal",
        /// The same scales, Student's t with 3 degrees of freedom.
        HeavyTailed = "heavy-tailed",
        /// Normal, and slower by 2 % as it warms up, over about half of the run.
        Drifting = "drifting",
        /// Normal, and slower by 4 % for 30 % of the time, twenty steps at a time.
        TwoState = "two-state",
        /// Steps scatter by 3 %, visits by 4 %, and a factor that all share by 10 % over 150 steps.
        CommonFactor = "common factor",
    }
}

impl Noise {
    /// Those of one scale.
    pub const COMMON: [Self; 4] = [Self::Normal, Self::HeavyTailed, Self::Drifting, Self::TwoState];

    /// The lines of a spec's `[synthetic]`; `steps` is about the number of steps in a run.
    pub(super) fn lines(self, steps: usize) -> String {
        let scatter = "noise = { sd = \"0.5%\", visits = \"1%\"";
        match self {
            Self::Normal => format!("{scatter} }}\n"),
            Self::HeavyTailed => format!("{scatter}, heavy_tails = \"100%\" }}\n"),
            Self::Drifting => format!("{scatter} }}\ndrift = {{ amplitude = \"2%\", steps = {} }}\n", steps / 4),
            Self::TwoState => format!("{scatter} }}\nboost = {{ share = \"30%\", size = \"4%\", steps = 20 }}\n"),
            Self::CommonFactor => {
                "noise = { sd = \"3%\", visits = \"4%\" }\ncommon = { sd = \"10%\", steps = 150 }\n".to_owned()
            }
        }
    }
}
