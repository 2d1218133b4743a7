"""Colors of charts by role, for figures of the study kernel; the older figures have their own palettes."""

# Of labels in an order, such as initial windows: Okabe and Ito's, dark enough on white (contrast 3:1) and
# distinguishable by readers who do not see red or green.
ORDERED = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5F5F5F", "#882255")

# Against a base: colors for faster, slower, and the base itself.
BETTER, WORSE, BASE = "#009E73", "#D55E00", "#777777"
