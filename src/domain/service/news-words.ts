/** What people read of news, on the page and at the command line. The page loads this file, so it imports nothing but types. */
import type { News } from "./news.ts";

interface Person {
  readonly id: string;
  readonly name: string;
}

/** As the API says it (GET /v1/activity). */
interface NewsEntry {
  readonly kind: News;
  readonly project: { readonly name: string };
  readonly session: { readonly name: string | null } | null;
  readonly change_request: { readonly number: number; readonly title: string } | null;
  readonly trigger_slug: string | null;
  readonly person: Person | null;
  readonly reviewer: Person | null;
  readonly state: string | null;
}

const TURNS: Readonly<Record<string, string>> = {
  completed: "The agent finished",
  failed: "A turn failed",
  interrupted: "The turn was stopped",
};
const WAITS: Readonly<Record<string, string>> = {
  permission: "The agent asks for permission",
  plan: "The agent proposes a plan",
};
const REMARKS: Readonly<Record<string, string>> = {
  approval: "approved it",
  changes_requested: "asks for changes",
};

/** @param readerId the reader, who is called "you". With null, everybody has a name */
export const entryText = (entry: NewsEntry, readerId: string | null): string => {
  const { kind, state, reviewer } = entry;
  const personName = (person: Person | null, otherwise: string): string =>
    person?.id === readerId ? "you" : (person?.name ?? otherwise);
  const doer = entry.person === null ? null : personName(entry.person, "");
  const who = doer === "you" ? "You" : (doer ?? "An agent");
  switch (kind) {
    case "session.turn_ended":
      return TURNS[state ?? ""] ?? "A turn ended";
    case "session.waiting":
      return WAITS[state ?? ""] ?? "The agent asks a question";
    case "approval.waiting":
      return "A call of the agent needs approval";
    case "session.work_unsaved":
      return "Its work could not be saved";
    case "session.failed":
      return "The session failed";
    case "change_request.opened":
      return `${who} opened it`;
    case "change_request.review_requested":
      return `${who} ${who === "You" ? "ask" : "asks"} ${personName(reviewer, "somebody")} for a review`;
    case "change_request.remarked":
      return `${who} ${who === "You" && state === "changes_requested" ? "ask for changes" : (REMARKS[state ?? ""] ?? "commented")}`;
    case "change_request.merged":
      return doer === null ? "It was merged" : `${who} merged it`;
    case "change_request.closed":
      return "It was closed";
    case "trigger.fired":
      return `The trigger ${entry.trigger_slug ?? ""} started a session`;
    case "fire.failed":
      return "A run could not start";
    case "fire.expired":
      return "A run waited too long";
    case "delivery.refused":
      return "Deliveries are refused";
    case "queue.full":
      return "The queue is full, and runs are refused";
    case "manifest.stale":
      return "platform.toml cannot be read";
    case "webhook.disabled":
      return "A receiver of notifications was disabled";
  }
};

/** Its change request, session, trigger or project, by a name. */
export const entrySubject = ({
  change_request: request,
  session,
  trigger_slug: slug,
  project,
}: NewsEntry): string =>
  request === null ? (session?.name ?? slug ?? project.name) : `#${request.number} ${request.title}`;
