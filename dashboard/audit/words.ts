/** The audit record in words. */
import type { Answer } from "../../src/cli/contract.ts";

export type AuditEvent = Answer<"GET /v1/audit">["events"][number];

/** By action, in the order of the filter. */
export const ACTION_WORDS: Readonly<Record<AuditEvent["action"], string>> = {
  sign_in: "signed in",
  "sign_in.link_created": "made a sign-in link",
  sign_out: "signed out",
  "browser.ended": "signed a browser out",
  "browser.all_ended": "signed all browsers out",
  "identity.linked": "added a sign-in provider",
  "identity.removed": "removed a sign-in provider",
  "device_login.approved": "signed a program in",
  "device_login.denied": "denied a program",
  "token.created": "made a token",
  "token.deleted": "deleted a token",
  "invitation.created": "invited a person",
  "invitation.accepted": "accepted an invitation",
  "invitation.revoked": "revoked an invitation",
  "person.created": "made a user",
  "person.updated": "changed a person",
  "person.deactivated": "deactivated a person",
  "person.reactivated": "reactivated a person",
  "member.set": "gave a role in a project",
  "member.removed": "removed a role in a project",
  "project.created": "made a project",
  "project.updated": "changed a project",
  "project.deleted": "deleted a project",
  "project.restored": "restored a deleted project",
  "project.removed": "removed a project for good",
  "project.credential_set": "set the repository's credential",
  "project.credential_removed": "removed the repository's credential",
  "secret.set": "set a secret",
  "secret.removed": "deleted a secret",
  "connector.credential_set": "set a connector's credential",
  "connector.credential_removed": "removed a connector's credential",
  "connector.signed_in": "signed in to a connector",
  "connector.signed_out": "ended the sign-in to a connector",
  "connector.tools_accepted": "accepted a connector's tools",
  "approval.approved": "approved a call",
  "approval.denied": "denied a call",
  "change_request.opened": "opened a change request",
  "change_request.merge": "asked to merge a change request",
  "change_request.close": "asked to close a change request",
  "change_request.verdict": "approved a change request, or asked for changes",
  "session.created": "asked to start a session",
  "session.updated": "changed a session",
  "session.stop": "asked to stop a session",
  "session.credentials_given": "gave her own credentials back to a session",
  "session.restart": "asked to restart a session",
  "session.delete": "asked to delete a session",
  "session.dismissed": "ended the session of a deactivated person",
  "session.save_deleted": "deleted an earlier save of a session",
  "preview.created": "made a preview link",
  "terminal.opened": "opened a terminal",
  "terminal.closed": "left a terminal",
  "spend_limit.set": "set a limit of spend",
  "spend_limit.removed": "removed a limit of spend",
  "notices.saved": "changed what she is told outside the page",
  "notices.removed": "turned notices outside the page off",
  "subscription.saved": "saved an own subscription",
  "subscription.removed": "removed an own subscription",
  "model_provider.created": "added a model provider",
  "model_provider.updated": "changed a model provider",
  "model_provider.deleted": "removed a model provider",
  "webhook.created": "added an outbound webhook",
  "webhook.updated": "changed an outbound webhook",
  "webhook.deleted": "removed an outbound webhook",
  "webhook.secret_rotated": "replaced an outbound webhook's secret",
  "webhook.delivery_replayed": "sent a delivery again",
  request: "sent a request",
  "account.created": "made an account",
  "account.tier_set": "changed an account's tier",
  "account.updated": "renamed the account",
  "branches.pruned": "removed merged branches",
  "installation.paused": "paused the installation",
  "installation.resumed": "let the restored copy go",
  "master_key.rotated": "replaced the master key",
};

/** The same for what was refused. */
const REFUSED_WORDS: Partial<typeof ACTION_WORDS> = {
  sign_in: "could not sign in",
  request: "was not allowed a request",
  "identity.linked": "could not add a sign-in provider",
  "invitation.accepted": "could not accept an invitation",
};

/** An actor without a name. */
export const ACTOR_WORDS: Readonly<Record<AuditEvent["actor"]["kind"], string>> = {
  person: "A person",
  session: "An agent",
  trigger: "An agent of a trigger",
  operator: "The operator",
  service: "The service",
  unknown: "Somebody",
};

const lookUp = (words: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(words, name) ? words[name] : undefined;

/** What the actor did. A page that stays open while the service is upgraded meets actions without words: those stand for themselves. */
export const actionText = ({ action, outcome }: Pick<AuditEvent, "action" | "outcome">): string =>
  (outcome === "refused" ? lookUp(REFUSED_WORDS, action) : undefined) ??
  lookUp(ACTION_WORDS, action) ??
  action;

export const actorName = ({ kind, name }: AuditEvent["actor"]): string => {
  if (kind === "session" && name !== null) return `An agent of ${name}`;
  if (kind === "operator" && name !== null) return `The operator ${name}`;
  return name ?? lookUp(ACTOR_WORDS, kind) ?? kind;
};
