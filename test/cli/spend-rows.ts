/** Rows of commands about limits of spend. */
import { invitePerson, runSession } from "../support/service/requests.ts";
import { notFound, type Row, type World } from "./row.ts";

const TARGET = /^Give one of --usd, --tokens and --remove\.\n$/;

/** The rows, by command; `world` exists when they are called. Limits are so high that no other row meets one. */
export const spendRowsOf = (world: World): Readonly<Record<string, Row>> => ({
  "limits list": {
    args: () => [],
    human: /^2\d{3}-\d\d: \$\d+\.\d\d, \d+ tokens\n/,
    json: "/v1/spend",
    refused: [["x"], 2, /./],
  },
  "limits account": {
    args: async () => {
      await world.modelProvider();
      return ["--usd", "1000000"];
    },
    human:
      /^limit +account\namount +\$1000000\.00\nspent +\$0\.00, 0 tokens\nrefuses +acme-\w+\/.+ \(no price is known\)\n$/,
    json: { scope: "account", unit: "usd", amount: 1_000_000 },
    refused: [["--usd", "1", "--remove"], 2, TARGET],
  },
  "limits each-session": {
    args: () => ["--tokens", "900000000"],
    human: /^limit +each-session\namount +900000000 tokens\n$/,
    json: { scope: "each_session", unit: "tokens" },
    refused: [["--usd", "x"], 2, /^--usd must be a number such as 5 or 0\.50\.\n$/],
  },
  "limits project": {
    args: () => [world.pid, "--usd", "1000000"],
    human: /^limit +project\nof +\S+.*\namount +\$1000000\.00\n/,
    json: { scope: "project", unit: "usd" },
    refused: [["--remove", "0190f3b2-0000-7000-8000-00000000dead"], 4, notFound("Limit of spend")],
  },
  "limits person": {
    args: async () => [(await invitePerson(world.service, "Limited")).id, "--usd", "1000000"],
    human: /^limit +person\nof +Limited\namount +\$1000000\.00\n/,
    json: { scope: "person", unit: "usd" },
    refused: [["0190f3b2-0000-7000-8000-00000000dead"], 2, TARGET],
  },
  "limits trigger": {
    args: () => ["nightly", "--usd", "1000000"],
    human: /^trigger +nightly\namount +\$1000000\.00 a day\nspent +\$0\.00, 0 tokens\n$/,
    json: { scope: "trigger", name: "nightly" },
    refused: [["nothing", "--usd", "1"], 4, notFound("Trigger")],
  },
  "limits session": {
    args: async () => [await runSession(world.service, world.pid), "--usd", "1000000"],
    human: /^LIMIT +OF +AMOUNT +SPENT\nsession +\S* +\$1000000\.00 +\$0\.00\n/,
    json: { spent: { usd: 0, tokens: 0 } },
    refused: [["0190f3b2-0000-7000-8000-00000000dead", "--usd", "1"], 4, notFound("Session")],
  },
  "models price": {
    args: async () => [`${await world.modelProvider()}/large`, "--input", "2", "--output", "8"],
    human: /\nown prices +large \$2, cached \$2, output \$8\n/,
    json: { prices: { large: { input: 2, cached: 2, output: 8 } } },
    refused: [["large", "--remove"], 2, /^MODEL must have the form provider\/model\.\n$/],
  },
});
