import { checkKills } from "./external-kills.ts";

// The step that leaves most open; the others are in external-kills.deep.test.ts.
checkKills(["when the server has it"]);
