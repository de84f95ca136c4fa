"""Forms of the inputs, one idea per file: standardised columns, their ranks, bins.

A form is learned from rows and applied to rows. To add one, write a final class of `Form` in a
file of its own and add it to `FORMS`; `AUTOMATIC` lists those that a fit tries by itself.
"""

from rflaf.inputs.forms.base import Form
from rflaf.inputs.forms.bins import Binned
from rflaf.inputs.forms.ranked import Ranks, WithRanks
from rflaf.inputs.forms.standardised import Standardised

FORMS: dict[str, type[Form]] = {
    form.name: form for form in (Standardised, WithRanks, Ranks, Binned)
}
AUTOMATIC: tuple[type[Form], ...] = (Standardised, WithRanks, Binned)

__all__ = ["AUTOMATIC", "FORMS", "Binned", "Form", "Ranks", "Standardised", "WithRanks"]
