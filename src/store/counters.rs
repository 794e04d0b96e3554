//! Named counters: every drop and every action is counted under a readable name.

/// Declares a struct of counters with a sum and an iterator over (name, count).
macro_rules! counters {
    ($(#[$meta:meta])* $vis:vis struct $Name:ident { $($(#[$doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $Name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $Name {
            /// Every count under its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }

        impl core::ops::Add for $Name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                $Name { $($field: self.$field + other.$field),* }
            }
        }
    };
}

pub(crate) use counters;

#[cfg(test)]
#[allow(unreachable_pub)] // The macro's fields are public.
mod tests {
    counters! {
        struct Fruit {
            apples,
            pears,
        }
    }

    #[test]
    fn counts_have_names_and_sums() {
        let sum = Fruit { apples: 1, pears: 2 } + Fruit { apples: 3, pears: 0 };
        assert_eq!(sum.iter().collect::<Vec<_>>(), [("apples", 4), ("pears", 2)]);
    }
}
