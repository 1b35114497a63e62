/** Handlers of trigger-wishes-api.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { commitAuthor } from "../../domain/repository/commit-author.ts";
import { parseCron, upcomingInstants } from "../../domain/trigger/cron.ts";
import { MANIFEST_FILE } from "../../domain/manifest/manifest.ts";
import { changeManifest, type ChangeRefusal, type TriggerChange } from "../../domain/manifest/edit.ts";
import { triggerLines, type TriggerWish, type WishFault } from "../../domain/manifest/trigger-lines.ts";
import { DEFAULT_AGENT } from "../../domain/sandbox/agent.ts";
import { isTriggerSlug } from "../../domain/trigger/trigger.ts";
import { wishBranch } from "../../domain/trigger/wish-branch.ts";
import { isZoneName } from "../../domain/trigger/zone.ts";
import { Manifests } from "../../services/projects/manifests.ts";
import { GitBackend, type GitError } from "../../git/port.ts";
import { newUuid } from "../../services/entropy.ts";
import { manifestText, requireAgent } from "../../services/projects/repository.ts";
import { Caller } from "../../http/api/access.ts";
import {
  BadRequest,
  Conflict,
  notFound,
  type NotFound,
  Unavailable,
  Unprocessable,
} from "../../http/api/errors.ts";
import { requireRole } from "../../http/callers/authorize.ts";
import { Addresses } from "../../http/limits.ts";
import type { TriggerPath } from "../../http/steps/projects/hand-fires.ts";
import { webhookAddress } from "../../http/steps/projects/trigger-listing.ts";
import { mergeRequest } from "./merging.ts";
import type { ChangeRequest } from "./ports/change-requests.ts";
import { gitFailed } from "../../http/answers/refusals.ts";
import { withApiErrors, projectFor } from "../../http/steps/answers.ts";
import { openRequest } from "./opening.ts";
import { instant } from "../../http/steps/wire.ts";
import { changeRequestWire } from "./wire.ts";
import { TriggerWishesGroup } from "./trigger-wishes-api.ts";
import { Platform } from "../../http/api/platform.ts";

const UPCOMING = 5;
/** How many faults an answer lists (api.md 1 "Bad input"). */
const ISSUES_MAX = 20;

/** The next instants of the schedule. None while it cannot be read. */
const nextInstants = ({ type, cron, timezone = "UTC" }: TriggerWish, now: number): readonly string[] => {
  const schedule = type === "cron" && cron !== undefined ? parseCron(cron) : null;
  if (schedule === null || Result.isFailure(schedule) || !isZoneName(timezone)) return [];
  return upcomingInstants(schedule.success, timezone, { afterMs: now, count: UPCOMING }).map(instant);
};

interface Described extends TriggerWish {
  readonly replaces?: string;
}

const webhookUrl = Effect.fnUntraced(function* (pid: string, { type, slug = "" }: TriggerWish) {
  const { publicUrl } = yield* Addresses;
  return type === "webhook" && isTriggerSlug(slug) ? webhookAddress(publicUrl, pid, slug) : null;
});

/** The lines of a trigger that is being described. It asks no repository, so that a page may call it at each key. */
const draft = Effect.fnUntraced(function* (pid: string, { replaces, ...wish }: Described) {
  const project = yield* projectFor(yield* Caller, pid);
  const read = yield* (yield* Manifests).current(project);
  const slugs = new Set([...read.triggers, ...read.errors].flatMap(({ slug }) => slug ?? []));
  if (replaces !== undefined) slugs.delete(replaces);
  const lines = triggerLines(wish, slugs);
  return {
    lines: Result.isSuccess(lines) ? lines.success : null,
    upcoming: nextInstants(wish, yield* Clock.currentTimeMillis),
    webhook_url: yield* webhookUrl(pid, wish),
    issues: Result.isSuccess(lines) ? [] : lines.failure.slice(0, ISSUES_MAX),
  };
});

const refusedWish = (faults: readonly WishFault[]): BadRequest =>
  new BadRequest({
    error: faults[0]?.message ?? "The trigger has a mistake.",
    code: "invalid_request",
    details: { issues: faults.slice(0, ISSUES_MAX) },
  });

const refusedFile = (message: string): Conflict =>
  new Conflict({ error: message, code: "manifest_not_extended" });

const changeRefusal = (refusal: ChangeRefusal): BadRequest | Conflict | NotFound | Unprocessable => {
  switch (refusal.kind) {
    case "wish":
      return refusedWish(refusal.faults);
    case "file":
      return refusedFile(refusal.message);
    case "unknown":
      return notFound("trigger");
    case "same":
      return new Unprocessable({
        error: `There is nothing to change. ${MANIFEST_FILE} already says this.`,
        code: "no_changes",
      });
  }
};

/** A change of the manifest, in the words of its commit and of what a reviewer reads. */
interface Wanted {
  readonly change: TriggerChange;
  readonly slug: string;
  /** The title's first word: "Add". */
  readonly verb: string;
  readonly description: string;
  readonly merge: boolean;
}

/** A secret without a value would make the address of a webhook answer 409. */
const describe = ({ slug = "", type, secret_env }: TriggerWish, verb: string): string =>
  [
    `${verb} the ${type} trigger \`${slug}\` ${verb === "Adds" ? "to" : "in"} \`${MANIFEST_FILE}\`.`,
    ...(type === "webhook" && secret_env !== undefined
      ? [`Its senders sign with the secret \`${secret_env}\`, which must have a value.`]
      : []),
  ].join("\n\n");

/** The request, merged if that is possible. If it is not, its page says why. */
const mergedOrOpen = (request: ChangeRequest) =>
  Effect.catchIf(
    mergeRequest(request, {}),
    (error) => error instanceof Conflict || error instanceof Unprocessable || error instanceof Unavailable,
    () => Effect.succeed(request),
  );

const refuseAgent = ({ message }: { readonly message: string }) =>
  Effect.fail(refusedWish([{ path: "agent", message }]));

/** Commits a change of the manifest to a new branch, and opens the change request for it. */
const proposeChange = Effect.fnUntraced(function* (pid: string, wish: Wanted) {
  const { change, slug, verb, description, merge } = wish;
  const caller = yield* Caller;
  if (merge) yield* requireRole(caller, "merge_change_request");
  const project = yield* projectFor(caller, pid);
  const git = yield* GitBackend;
  const repository = { projectId: pid };
  const parent = yield* git.resolveBase(repository, project.defaultBranch);
  const bytes = yield* manifestText(repository, parent);
  const changedText = changeManifest(bytes ?? new Uint8Array(), change);
  if (Result.isFailure(changedText)) return yield* changeRefusal(changedText.failure);
  const agent = "wish" in change ? (change.wish.agent ?? DEFAULT_AGENT) : DEFAULT_AGENT;
  yield* requireAgent({ projectId: pid, commit: parent, name: agent }).pipe(
    Effect.catchTags({ UnknownAgent: refuseAgent, BrokenAgent: refuseAgent }),
  );
  const title = `${verb} the trigger ${slug}`;
  const ref = wishBranch(verb, slug, yield* newUuid);
  yield* git.commitFile(repository, {
    branch: ref,
    parent,
    file: MANIFEST_FILE,
    content: changedText.success,
    message: title,
    author: commitAuthor(caller.user),
    at: yield* Clock.currentTimeMillis,
  });
  const opening = yield* openRequest(project, { head: { ref, sessionId: null }, title, description });
  return changeRequestWire(merge ? yield* mergedOrOpen(opening) : opening);
});

interface Proposed extends Described {
  readonly merge?: boolean;
}

/** A new trigger, or one that takes the place of another. */
const propose = (pid: string, { replaces, merge = false, ...wish }: Proposed) =>
  proposeChange(pid, {
    change: replaces === undefined ? { kind: "add", wish } : { kind: "replace", slug: replaces, wish },
    slug: replaces ?? wish.slug ?? "",
    verb: replaces === undefined ? "Add" : "Change",
    description: describe(wish, replaces === undefined ? "Adds" : "Changes"),
    merge,
  });

interface Action {
  readonly action: "pause" | "resume" | "delete";
  readonly merge?: boolean;
}

const ACTION_TEXTS = {
  pause: { verb: "Pause", effect: "Its schedule and its webhook start no sessions. Firing by hand works." },
  resume: { verb: "Resume", effect: "Its schedule or its webhook starts sessions again." },
  delete: { verb: "Delete", effect: "Its runs stay in the list of runs." },
} as const;

const act = ({ pid, slug }: TriggerPath, { action, merge = false }: Action) => {
  const { verb, effect } = ACTION_TEXTS[action];
  return proposeChange(pid, {
    change:
      action === "delete" ? { kind: "remove", slug } : { kind: "switch", slug, enabled: action === "resume" },
    slug,
    verb,
    description: `${verb}s the trigger \`${slug}\` in \`${MANIFEST_FILE}\`. ${effect}`,
    merge,
  });
};

const manifestUnreadable = (error: GitError) =>
  error.code === "not_a_file" || error.code === "file_too_large"
    ? refusedFile(error.message)
    : gitFailed(error);

export const triggerWishesHandlers = HttpApiBuilder.group(
  Platform.add(TriggerWishesGroup),
  "triggerWishes",
  (handlers) =>
    handlers
      .handle("draft", ({ params, payload }) => withApiErrors(draft(params.pid, payload)))
      .handle("propose", ({ params, payload }) =>
        withApiErrors(propose(params.pid, payload)).pipe(
          Effect.catchTag("GitError", (error) => Effect.fail(manifestUnreadable(error))),
        ),
      )
      .handle("act", ({ params, payload }) =>
        withApiErrors(act(params, payload)).pipe(
          Effect.catchTag("GitError", (error) => Effect.fail(manifestUnreadable(error))),
        ),
      ),
);
