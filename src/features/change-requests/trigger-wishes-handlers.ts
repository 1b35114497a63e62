/** Handlers of trigger-wishes-api.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { commitAuthor } from "../../domain/repository/commit-author.ts";
import { parseCron, upcomingInstants } from "../../domain/trigger/cron.ts";
import { MANIFEST_FILE } from "../../domain/manifest/manifest.ts";
import {
  triggerLines,
  withTrigger,
  type TriggerWish,
  type WishFault,
} from "../../domain/manifest/trigger-lines.ts";
import { isZoneName } from "../../domain/trigger/zone.ts";
import { Manifests } from "../../services/manifests.ts";
import { GitBackend } from "../../git/port.ts";
import { newUuid } from "../../services/entropy.ts";
import { manifestText, requireAgent } from "../../services/repository.ts";
import { Caller } from "../../http/api/access.ts";
import { BadRequest, Conflict } from "../../http/api/errors.ts";
import { gitFailed } from "../../http/refusals.ts";
import { answering, projectFor } from "../../http/steps/answers.ts";
import { openRequest } from "./opening.ts";
import { instant } from "../../http/steps/wire.ts";
import { changeRequestWire } from "./wire.ts";
import { TriggerWishesGroup } from "./trigger-wishes-api.ts";
import { Platform } from "../../http/api/platform.ts";

const UPCOMING = 5;
/** As many faults as any answer lists (api.md 1 "Bad input"). */
const ISSUES_MAX = 20;

/** The next instants of the schedule. None while it cannot be read. */
const upcomingOf = ({ type, cron, timezone = "UTC" }: TriggerWish, now: number): readonly string[] => {
  const schedule = type === "cron" && cron !== undefined ? parseCron(cron) : null;
  if (schedule === null || Result.isFailure(schedule) || !isZoneName(timezone)) return [];
  return upcomingInstants(schedule.success, timezone, { afterMs: now, count: UPCOMING }).map(instant);
};

/** The lines of a trigger that is being described. It asks no repository, so that a page may call it at each key. */
const draft = Effect.fnUntraced(function* (pid: string, wish: TriggerWish) {
  const project = yield* projectFor(yield* Caller, pid);
  const read = yield* (yield* Manifests).current(project);
  const taken = new Set([...read.triggers, ...read.errors].flatMap(({ slug }) => slug ?? []));
  const lines = triggerLines(wish, taken);
  return {
    lines: Result.isSuccess(lines) ? lines.success : null,
    upcoming: upcomingOf(wish, yield* Clock.currentTimeMillis),
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

/** What a reviewer reads. A secret without a value would make the new address answer 409. */
const describe = ({ slug = "", type, secret_env }: TriggerWish): string =>
  [
    `Adds the ${type} trigger \`${slug}\` to \`${MANIFEST_FILE}\`.`,
    ...(type === "webhook" && secret_env !== undefined
      ? [`Its senders sign with the secret \`${secret_env}\`, which must have a value.`]
      : []),
  ].join("\n\n");

/** A commit with the trigger's lines on a branch of its own, and the change request for it. */
export const propose = Effect.fnUntraced(function* (pid: string, wish: TriggerWish) {
  const caller = yield* Caller;
  const project = yield* projectFor(caller, pid);
  const git = yield* GitBackend;
  const repository = { projectId: pid };
  const parent = yield* git.resolveBase(repository, project.defaultBranch);
  const bytes = yield* manifestText(repository, parent);
  const made = withTrigger(bytes ?? new Uint8Array(), wish);
  if (Result.isFailure(made)) {
    const refusal = made.failure;
    return yield* refusal.kind === "wish" ? refusedWish(refusal.faults) : refusedFile(refusal.message);
  }
  yield* Effect.catchTag(
    requireAgent(repository, parent, wish.agent ?? "default"),
    "UnknownAgent",
    ({ path }) =>
      Effect.fail(refusedWish([{ path: "agent", message: `The repository has no file ${path}.` }])),
  );
  const { slug = "" } = wish;
  const title = `Add the trigger ${slug}`;
  // The id's end makes the name new: an earlier proposal may have been closed, and its branch stays.
  const ref = `add-trigger-${slug}-${(yield* newUuid).slice(-8)}`;
  yield* git.commitFile(repository, {
    branch: ref,
    parent,
    file: MANIFEST_FILE,
    content: made.success.text,
    message: title,
    author: commitAuthor(caller.user),
    at: yield* Clock.currentTimeMillis,
  });
  const opened = yield* openRequest(project, {
    head: { ref, sessionId: null },
    title,
    description: describe(wish),
  });
  return changeRequestWire(opened);
});

export const triggerWishesHandlers = HttpApiBuilder.group(
  Platform.add(TriggerWishesGroup),
  "triggerWishes",
  (handlers) =>
    handlers
      .handle("draft", ({ params, payload }) => answering(draft(params.pid, payload)))
      .handle("propose", ({ params, payload }) =>
        answering(propose(params.pid, payload)).pipe(
          Effect.catchTag("GitError", (error) =>
            Effect.fail(
              error.code === "not_a_file" || error.code === "file_too_large"
                ? refusedFile(error.message)
                : gitFailed(error),
            ),
          ),
        ),
      ),
);
