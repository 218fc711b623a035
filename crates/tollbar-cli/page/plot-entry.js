// What the report draws with, as one global: tools/page.sh bundles it into vendor/plot.js.
import {plot, barX, cell, dot, line, rectY, ruleY, text, tip, pointer} from "@observablehq/plot";
window.Plot = {plot, barX, cell, dot, line, rectY, ruleY, text, tip, pointer};
