import { checkKills } from "./external-kills.ts";

checkKills([
  "before the push is begun",
  "while the server receives it",
  "when the server has it and says so",
]);
