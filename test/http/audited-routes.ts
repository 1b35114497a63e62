/**
 * What each route leaves on the audit record: an action, or the reason why it leaves none. audit-routes.test.ts calls
 * each of them, and fails for a route that changes something and is missing here.
 */
import type { AuditAction } from "../../src/domain/person/audit.ts";

export interface Audited {
  readonly action: AuditAction;
  /** Why the call of calls.ts changes nothing. Where the change itself is tried. */
  readonly elsewhere?: string;
}

const on = (action: AuditAction): Audited => ({ action });
const elsewhere = (action: AuditAction, test: string): Audited => ({ action, elsewhere: test });

/** By method and pattern. Text: why the route leaves no row. */
export const AUDITED: Readonly<Record<string, Audited | string>> = {
  "POST /v1/tokens": on("token.created"),
  "POST /v1/device-logins": "reaches nothing until a person approves it",
  "POST /v1/device-logins/token": elsewhere("token.created", "device-login.test.ts"),
  "POST /v1/device-logins/look": "shows who asks, and changes nothing",
  "POST /v1/device-logins/approve": elsewhere("device_login.approved", "device-login.test.ts"),
  "POST /v1/device-logins/deny": elsewhere("device_login.denied", "device-login.test.ts"),
  "DELETE /v1/tokens/:id": on("token.deleted"),
  "DELETE /v1/me/browsers": elsewhere("browser.all_ended", "audit.test.ts"),
  "DELETE /v1/me/browsers/:id": elsewhere("browser.ended", "audit.test.ts"),
  "DELETE /v1/me/identities/:id": elsewhere("identity.removed", "identities.test.ts"),
  "POST /v1/model-providers": on("model_provider.created"),
  "PATCH /v1/model-providers/:id": on("model_provider.updated"),
  "DELETE /v1/model-providers/:id": on("model_provider.deleted"),
  "PATCH /v1/people/:id": on("person.updated"),
  "POST /v1/people/:id/deactivate": on("person.deactivated"),
  "POST /v1/people/:id/reactivate": on("person.reactivated"),
  "POST /v1/invitations": on("invitation.created"),
  "DELETE /v1/invitations/:id": on("invitation.revoked"),
  "PUT /v1/projects/:pid/members/:id": on("member.set"),
  "DELETE /v1/projects/:pid/members/:id": elsewhere("member.removed", "audit-changes.test.ts"),
  "POST /v1/projects": on("project.created"),
  "PATCH /v1/projects/:pid": on("project.updated"),
  "DELETE /v1/projects/:pid": elsewhere("project.deleted", "project-deletion.test.ts"),
  "POST /v1/projects/:pid/restore": elsewhere("project.restored", "project-deletion.test.ts"),
  "PUT /v1/projects/:pid/repository/credential": elsewhere("project.credential_set", "audit.test.ts"),
  "DELETE /v1/projects/:pid/repository/credential": elsewhere("project.credential_removed", "audit.test.ts"),
  "POST /v1/projects/:pid/repository/check": "asks the other server, and changes nothing",
  "POST /v1/repository-checks": "asks the other server, and changes nothing",
  "POST /v1/projects/:pid/sync": "reads the manifest, as the service does by itself",
  "POST /v1/projects/:pid/sessions": on("session.created"),
  "PATCH /v1/projects/:pid/sessions/:sid": on("session.updated"),
  "POST /v1/projects/:pid/sessions/:sid/stop": on("session.stop"),
  "POST /v1/projects/:pid/sessions/:sid/restart": elsewhere("session.restart", "audit.test.ts"),
  "DELETE /v1/projects/:pid/sessions/:sid": on("session.delete"),
  "DELETE /v1/projects/:pid/sessions/:sid/saves/:id": elsewhere(
    "session.save_deleted",
    "sessions-saved.test.ts",
  ),
  "POST /v1/projects/:pid/sessions/:sid/own-credentials/give-back": elsewhere(
    "session.credentials_given",
    "own-credentials.test.ts",
  ),
  "POST /v1/projects/:pid/sessions/:sid/preview": on("preview.created"),
  "POST /v1/projects/:pid/sessions/:sid/messages": "the conversation has it, with its author",
  "POST /v1/projects/:pid/sessions/:sid/attachments": "the conversation has it",
  "DELETE /v1/projects/:pid/sessions/:sid/messages/:id": "the conversation has it",
  "POST /v1/projects/:pid/sessions/:sid/interrupt": "the conversation has it",
  "POST /v1/projects/:pid/sessions/:sid/queue/resume": "the conversation has it",
  "POST /v1/projects/:pid/sessions/:sid/requests/:id/answer": "the conversation has it, with its author",
  "POST /v1/projects/:pid/sessions/:sid/refresh": "works inside the sandbox",
  "POST /v1/projects/:pid/sessions/:sid/abort": "works inside the sandbox",
  "* /v1/projects/:pid/sessions/:sid/runtime/*": "works inside the sandbox",
  "* /v1/projects/:pid/sessions/:sid/ports/:port/*": "works inside the sandbox",
  "PUT /v1/projects/:pid/secrets/:name": on("secret.set"),
  "POST /v1/projects/:pid/secrets/:name/try": "asks the provider, and changes nothing",
  "DELETE /v1/projects/:pid/secrets/:name": elsewhere("secret.removed", "audit.test.ts"),
  "PUT /v1/projects/:pid/connectors/:slug/credential": elsewhere(
    "connector.credential_set",
    "executor.test.ts",
  ),
  "DELETE /v1/projects/:pid/connectors/:slug/credential": elsewhere(
    "connector.credential_removed",
    "executor.test.ts",
  ),
  "POST /v1/projects/:pid/connectors/:slug/authorize": "begins a sign-in, which has its own row when it ends",
  "POST /v1/projects/:pid/connectors/:slug/catalogue": elsewhere(
    "connector.tools_accepted",
    "executor.test.ts",
  ),
  "POST /v1/projects/:pid/approvals/:id/approve": elsewhere("approval.approved", "approvals.test.ts"),
  "POST /v1/projects/:pid/approvals/:id/deny": elsewhere("approval.denied", "approvals.test.ts"),
  "POST /v1/projects/:pid/executor/mcp": "the record of calls has it",
  "POST /v1/projects/:pid/triggers/:slug/fire": "the ledger of fires has it",
  "POST /v1/projects/:pid/triggers/:slug/preview": "renders a prompt, and changes nothing",
  "POST /v1/projects/:pid/triggers/drafts": "shows lines, and changes nothing",
  "POST /v1/projects/:pid/triggers/proposals": on("change_request.opened"),
  "POST /v1/projects/:pid/triggers/:slug/proposals": on("change_request.opened"),
  "POST /v1/projects/:pid/environment/warm": "prepares a session, and changes nothing",
  "POST /v1/projects/:pid/environment/builds": "the build names who asked for it",
  "POST /v1/projects/:pid/environment/builds/:bid/cancel": "the build has it",
  "POST /v1/projects/:pid/webhooks": on("webhook.created"),
  "PATCH /v1/projects/:pid/webhooks/:id": elsewhere("webhook.updated", "audit-changes.test.ts"),
  "DELETE /v1/projects/:pid/webhooks/:id": on("webhook.deleted"),
  "POST /v1/projects/:pid/webhooks/:id/test": "sends a test, and changes nothing",
  "POST /v1/projects/:pid/webhooks/:id/rotate": on("webhook.secret_rotated"),
  "POST /v1/projects/:pid/webhooks/:id/deliveries/:did/replay": elsewhere(
    "webhook.delivery_replayed",
    "outbound-webhooks.test.ts",
  ),
  "POST /v1/projects/:pid/fires/:id/replay": "the ledger of fires has it",
  "DELETE /v1/projects/:pid/fires/:id": "the ledger of fires has it",
  "POST /v1/operator/resume": elsewhere("installation.resumed", "paused.test.ts"),
  "POST /v1/operator/doctor": "starts a sandbox of its own, and changes nothing",
  "POST /v1/projects/:pid/change-requests": elsewhere("change_request.opened", "audit.test.ts"),
  "PATCH /v1/projects/:pid/change-requests/:number": "the change request has its texts",
  "POST /v1/projects/:pid/change-requests/:number/remarks": elsewhere(
    "change_request.verdict",
    "reviews.test.ts",
  ),
  "PATCH /v1/projects/:pid/change-requests/:number/remarks/:id": "the change request has its remarks",
  "DELETE /v1/projects/:pid/change-requests/:number/remarks/:id": "the change request has its remarks",
  "POST /v1/projects/:pid/change-requests/:number/merge": on("change_request.merge"),
  "POST /v1/projects/:pid/change-requests/:number/close": on("change_request.close"),
  "POST /v1/webhooks/projects/:pid/:slug": "the ledger of fires has it",
  "POST /v1/git/:repository/git-upload-pack": "reads",
  "POST /v1/git/:repository/git-receive-pack":
    "the repository has the commits, and people cannot push to the default branch",
  "* /v1/nodes/*": "a node of the service calls it",
  "POST /dashboard/open": elsewhere("sign_in", "audit.test.ts"),
  "POST /dashboard/session": elsewhere("sign_in", "audit.test.ts"),
  "DELETE /dashboard/session": elsewhere("sign_out", "audit.test.ts"),
  "POST /dashboard/links": on("sign_in.link_created"),
  "POST /dashboard/login/:provider": "begins a sign-in, which the callback ends",
  "POST /dashboard/invitations/look": elsewhere("invitation.accepted", "audit.test.ts"),
  "POST /dashboard/invitations/accept": elsewhere("invitation.accepted", "audit.test.ts"),
};
