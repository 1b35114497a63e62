/** api.md 1 "Caller", "Origin" as a table: what each kind of token and each role gets where a power is needed. */
import type { Privilege } from "../../src/domain/person/privileges.ts";
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
const BAD = ["none", "unknown", "expired", "revoked", "preview"] as const satisfies readonly TokenKind[];
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
/** api.md 1 as a table: the power → the answer to each kind of token and each role. */
const POWERS = {
  ask: everyone,
  //               user owner member viewer outsider bound elsewhere foreign session trigger sandbox
  self:       row("in   in    in     in     in       in    in        in      in      403     403"),
  person:     row("in   in    in     in     in       in    in        in      403     403     403"),
  account:    row("in   in    in     in     in       403   403       in      403     403     403"),
  administer: row("in   403   403    403    403      403   403       in      403     403     403"),
  read:       row("in   in    in     in     404      in    404       404     in      in      403"),
  work:       row("in   in    in     403    404      in    404       404     in      403     403"),
  withdraw:   row("in   in    in     in     404      in    404       404     in      403     403"),
  propose:    row("in   in    in     403    404      in    404       404     in      in      403"),
  converse:   row("in   in    in     403    404      in    404       404     403     403     403"),
  execute:    row("403  403   403    403    403      403   403       403     in      in      403"),
  contribute: row("in   in    in     403    404      in    404       404     403     403     403"),
  merge:      row("in   in    in     403    404      in    404       404     403     403     403"),
  govern:     row("in   in    403    403    404      in    404       404     403     403     403"),
  operate:    row("in   403   403    403    403      403   403       403     403     403     403"),
  clone:      row("403  403   403    403    403      403   403       403     403     403     in"),
  fetch:      row("in   in    in     in     404      in    404       404     403     403     403"),
  push:       row("in   in    in     403    404      in    404       404     403     403     403"),
  // A token is never a node's credential (test/http/server/nodes.test.ts has those that are), and no door of the API asks for `inside`.
  node:       row("401  401   401    401    401      401   401       401     401     401     401"),
} as const;

/** The privileges of each power, once more: one that moves to another power must be moved here, too. */
const HELD_BY: Readonly<Record<keyof typeof POWERS, readonly Privilege[]>> = {
  ask: ["see_health", "read_documents", "sign_in", "sign_for_trigger"],
  self: ["know_itself"],
  person: ["link_browser"],
  account: [
    "manage_own_access",
    "see_people",
    "see_model_providers",
    "manage_own_model_providers",
    "manage_own_subscriptions",
    "manage_own_notices",
    "see_queue",
    "create_project",
  ],
  administer: ["govern_account"],
  operate: ["operate_service"],
  read: ["read_project"],
  work: [
    "start_session",
    "restart_session",
    "stop_session",
    "discard_work",
    "name_session",
    "enter_port",
    "close_change_request",
    "edit_change_request",
    "build_environment",
    "try_triggers",
  ],
  converse: [
    "instruct_agent",
    "manage_messages",
    "interrupt_agent",
    "settle_request",
    "limit_session",
    "approve_call",
    "use_runtime",
    "control_runtime",
    "open_terminal",
    "give_back_credentials",
    "review_change_request",
  ],
  withdraw: ["cancel_request"],
  propose: ["open_change_request"],
  merge: ["merge_change_request"],
  execute: ["call_tool"],
  contribute: [
    "use_own_credential",
    "see_secret_names",
    "see_project_model_providers",
    "propose_trigger",
    "fetch_saved_work",
    "delete_save",
  ],
  govern: [
    "write_secret",
    "set_project_model_provider",
    "govern_project",
    "delete_project",
    "open_owners_terminal",
  ],
  fetch: ["read_repository", "read_saved_work"],
  push: ["write_ref"],
  clone: ["get_clone_credential", "renew_subscription"],
  node: ["join_nodes"],
};

/** Privilege → the answer to each kind of token and each role. */
export const FATES: Readonly<Partial<Record<Privilege, Readonly<Record<TokenKind, Fate>>>>> =
  Object.fromEntries(
    (Object.keys(HELD_BY) as (keyof typeof POWERS)[]).flatMap((power) =>
      HELD_BY[power].map((privilege) => [privilege, POWERS[power]]),
    ),
  );
