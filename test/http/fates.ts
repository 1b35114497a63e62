/** api.md 1 "Caller", "Origin" as a table: what each kind of token and each role gets where a power is needed. */
import type { Fate } from "./call.ts";
import type { TokenKind } from "./cast.ts";

/** The tokens that are good, in the order of the table's columns. */
export const GOOD = [
  "user",
  "projectOwner",
  "member",
  "viewer",
  "outsider",
  "bound",
  "elsewhere",
  "foreign",
  "session",
  "trigger",
  "sandbox",
] as const satisfies readonly TokenKind[];
const BAD = ["none", "unknown", "expired", "revoked"] as const satisfies readonly TokenKind[];
export const KINDS: readonly TokenKind[] = [...BAD, ...GOOD];

/** A row of the table: the fate of each good token. All others get a 401. */
const row = (cells: string): Readonly<Record<TokenKind, Fate>> => {
  const fates = cells
    .trim()
    .split(/ +/)
    .map((cell) => (cell === "in" ? "in" : (Number(cell) as Fate)));
  if (fates.length !== GOOD.length) throw new Error(`a row has ${GOOD.length} cells`);
  const entries = [...BAD.map((kind) => [kind, 401]), ...GOOD.map((kind, place) => [kind, fates[place]])];
  return Object.fromEntries(entries) as Record<TokenKind, Fate>;
};

const everyone = Object.fromEntries(KINDS.map((kind) => [kind, "in"])) as Record<TokenKind, Fate>;

// prettier-ignore
/** api.md 1 as a table: the power that a route requires → the answer to each kind of token and each role. */
export const FATES: Readonly<Record<string, Readonly<Record<TokenKind, Fate>>>> = {
  nothing: everyone,
  //               user owner member viewer outsider bound elsewhere foreign session trigger sandbox
  self:       row("in   in    in     in     in       in    in        in      in      403     403"),
  account:    row("in   in    in     in     in       403   403       in      403     403     403"),
  administer: row("in   403   403    403    403      403   403       in      403     403     403"),
  read:       row("in   in    in     in     404      in    404       404     in      in      403"),
  work:       row("in   in    in     403    404      in    404       404     in      403     403"),
  propose:    row("in   in    in     403    404      in    404       404     in      in      403"),
  converse:   row("in   in    in     403    404      in    404       404     403     403     403"),
  execute:    row("403  403   403    403    403      403   403       403     in      in      403"),
  contribute: row("in   in    in     403    404      in    404       404     403     403     403"),
  merge:      row("in   in    in     403    404      in    404       404     403     403     403"),
  govern:     row("in   in    403    403    404      in    404       404     403     403     403"),
  operate:    row("in   403   403    403    403      403   403       403     403     403     403"),
  clone:      row("403  403   403    403    403      403   403       403     403     403     in"),
  git:        row("in   in    in     in     404      in    404       404     403     403     403"),
  // A token is never a node's credential (test/http/nodes.test.ts has those that are).
  node:       row("401  401   401    401    401      401   401       401     401     401     401"),
  person:     row("in   in    in     in     in       in    in        in      403     403     403"),
};
