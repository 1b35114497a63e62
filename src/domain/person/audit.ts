/** The audit record's words: who acts, what can be on record, and how it ended. docs/use/audit.md shows them to people. */

/**
 * Who acts. `session` and `trigger`: an agent with the token of a session that a person or a trigger started. `operator`:
 * a command on the service's own machine. `service`: the service by itself. `unknown`: a caller who was not let in.
 */
export const ACTOR_KINDS = ["person", "session", "trigger", "operator", "service", "unknown"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/**
 * `done`: written together with the change. `begun`: asked for, and written before; an actor of the service performs it.
 * `refused`: nothing changed.
 */
export const AUDIT_OUTCOMES = ["done", "begun", "refused"] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

export const AUDIT_ACTIONS = [
  "account.created",
  "account.tier_set",
  "account.updated",
  "approval.approved",
  "approval.denied",
  "branches.pruned",
  "browser.all_ended",
  "browser.ended",
  "change_request.close",
  "change_request.merge",
  "change_request.opened",
  "change_request.verdict",
  "connector.credential_removed",
  "connector.credential_set",
  "connector.signed_in",
  "connector.signed_out",
  "connector.tools_accepted",
  "device_login.approved",
  "device_login.denied",
  "identity.linked",
  "identity.removed",
  "invitation.accepted",
  "invitation.created",
  "invitation.revoked",
  "installation.paused",
  "installation.resumed",
  "master_key.rotated",
  "member.removed",
  "member.set",
  "model_provider.created",
  "model_provider.deleted",
  "model_provider.updated",
  "notices.removed",
  "notices.saved",
  "person.created",
  "person.deactivated",
  "person.reactivated",
  "person.updated",
  "preview.created",
  "project.created",
  "project.credential_removed",
  "project.credential_set",
  "project.deleted",
  "project.removed",
  "project.restored",
  "project.updated",
  "request",
  "secret.removed",
  "secret.set",
  "session.created",
  "session.credentials_given",
  "session.delete",
  "session.dismissed",
  "session.restart",
  "session.save_deleted",
  "session.stop",
  "session.updated",
  "sign_in",
  "sign_in.link_created",
  "sign_out",
  "spend_limit.removed",
  "spend_limit.set",
  "subscription.removed",
  "subscription.saved",
  "terminal.closed",
  "terminal.opened",
  "token.created",
  "token.deleted",
  "webhook.created",
  "webhook.deleted",
  "webhook.delivery_replayed",
  "webhook.secret_rotated",
  "webhook.updated",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditValue = string | number | boolean | null | readonly string[];
/** A value before a change, and after it. */
export interface AuditDifference {
  readonly from: AuditValue;
  readonly to: AuditValue;
}
/**
 * What changed, by field: a difference where something had a value before, otherwise the new value. Never a secret, a code or the text of
 * a message.
 */
export type AuditChanges = Readonly<Record<string, AuditValue | AuditDifference>>;

/** How many characters of a text that a client sends are kept: its user agent, and each value of the changes. */
export const AUDIT_TEXT_MAX = 200;

const boundText = (text: string): string => text.slice(0, AUDIT_TEXT_MAX).toWellFormed();

const keptValue = (value: AuditValue): AuditValue => {
  if (typeof value === "string") return boundText(value);
  return typeof value === "object" && value !== null ? value.map(boundText) : value;
};

const isDifference = (value: AuditChanges[string]): value is AuditDifference =>
  typeof value === "object" && value !== null && "from" in value;

const boundChange = (value: AuditChanges[string]): AuditChanges[string] =>
  isDifference(value) ? { from: keptValue(value.from), to: keptValue(value.to) } : keptValue(value);

/** The fields whose values differ. */
export const differences = <Field extends string>(
  before: Readonly<Record<Field, AuditValue>>,
  after: Readonly<Record<Field, AuditValue>>,
): Readonly<Partial<Record<Field, AuditDifference>>> =>
  Object.fromEntries(
    (Object.keys(after) as Field[])
      .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
      .map((field) => [field, { from: before[field], to: after[field] }]),
  ) as Partial<Record<Field, AuditDifference>>;

/** The changes as they are kept: texts are cut, and fields without a value left out. */
export const keptChanges = (
  changes: Readonly<Record<string, AuditChanges[string] | undefined>>,
): AuditChanges =>
  Object.fromEntries(
    Object.entries(changes).flatMap(([field, value]) =>
      value === undefined ? [] : [[field, boundChange(value)]],
    ),
  );
