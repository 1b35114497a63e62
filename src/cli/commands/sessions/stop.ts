/** `platform sessions stop`: stops a session once its work is saved, and says what is not. */
import { setTimeout as pause } from "node:timers/promises";
import type { Answer } from "../../contract.ts";
import { command } from "../../command.ts";
import { EXIT, Failure, usageFailure } from "../../failure.ts";
import { timeToSecond, safeLine } from "../../terminal.ts";
import { sessionId } from "../../words.ts";
import { leftOutLines, pathCount } from "./saved-words.ts";
import { stateWord } from "./state-words.ts";
import { quantity } from "../../../domain/counted.ts";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;
type Paths = NonNullable<Session["saved"]>["pending"];

/** Pause between two looks at a save. */
const LOOK_MS = 1_000;

/** Does work, and looks in between until it has ended. */
const watchWork = async <A>(work: Promise<A>, look: () => Promise<void>): Promise<A> => {
  const end = work.then(
    () => true,
    () => true,
  );
  const isOver = () => Promise.race([end, pause(LOOK_MS, false, { ref: false })]);
  do {
    // oxlint-disable-next-line no-await-in-loop -- one look follows the other; a failed look does not fail the work
    await look().catch(() => undefined);
    // oxlint-disable-next-line no-await-in-loop
  } while (!(await isOver()));
  return await work;
};

const progressLine = ({ saved }: Session): string => {
  const left = pathCount(saved?.pending ?? []);
  return left === 0
    ? "Saving unpushed work …"
    : `Saving unpushed work … ${quantity(left, "path is", "paths are")} left.`;
};

/** The details of a refused stop. */
interface Unsaved {
  readonly pending?: Paths;
  readonly saved?: Session["saved"];
}

const indent = (paths: Paths): readonly string[] => leftOutLines(paths).map((line) => `  ${line}`);

/** The refusal for a person: the paths, and what to do about them. */
const withPaths = ({ exit, code, details = {} }: Failure, sid: string): Failure => {
  const { pending = [], saved } = details as Unsaved;
  const why = saved?.error == null ? "" : `: ${saved.error}`;
  return new Failure(exit, code, {
    message: `The session runs on, because not everything could be saved${why}`,
    details,
    lines: [
      ...indent(pending),
      "If the agent was in a turn, the turn was interrupted.",
      `\`platform sessions stop ${sid}\` tries again.`,
      `\`platform sessions stop ${sid} --try\` saves what it can, and stops. The rest is lost.`,
    ],
  });
};

/** Lost work after a stop without a complete save. */
const lossLines = ({ saved }: Session, isSkipped: boolean): readonly string[] => {
  if (isSkipped) return ["This stop saved nothing. Changes since the last save are lost."];
  if (saved === null) return [];
  const unsavedLines = indent(saved.pending);
  // Ignored files are left behind at each stop.
  const left = indent(saved.skipped.filter(({ reason }) => reason !== "ignored"));
  return [
    ...(saved.state === "complete"
      ? []
      : [`Not all work is saved: ${saved.error ?? "some paths are missing"}`]),
    ...unsavedLines,
    ...(left.length === 0 ? [] : ["No save takes these:"]),
    ...left,
  ];
};

/** A session that failed, perhaps while it stopped: nothing was saved any more. */
const failedBefore = ({ id, failure, saved }: Session): Failure =>
  new Failure(EXIT.notSaved, "session_failed", {
    message: `The session failed before its work was saved${failure === null ? "" : `: ${failure.message}`}`,
    lines: [
      saved?.at == null
        ? "Changes since the last push are lost."
        : `Changes since the last save, at ${timeToSecond(saved.at)}, are lost.`,
      `\`platform sessions show ${id}\` says what is saved.`,
    ],
  });

export const stop = command({
  name: "sessions stop",
  about: "Save a session's unpushed work, and stop it",
  asks: ({ options }) => {
    if (options.now) return "Stop the session without another save? Changes since the last one are lost.";
    return options.try ? "Stop the session even if some work cannot be saved? That work is lost." : null;
  },
  takes: ["SESSION"],
  inProject: true,
  options: {
    try: { about: "Stop even if some work cannot be saved" },
    now: { about: "Stop without another save. Changes since the last one are lost" },
  },
  notes:
    "If something cannot be saved, the session runs on, the paths are listed with their reasons, and the exit code is 9. It is also 9 if the session has failed. A save may take a minute.",
  run: async ({ given, options, json, note, progress, api, project }) => {
    if (options.try && options.now) throw usageFailure("Give --try or --now, not both.");
    const params = { pid: await project(), sid: sessionId(given.SESSION) };
    const client = api();
    const save = options.now ? "skip" : options.try ? "try" : "require";
    const stopping = client.call("POST /v1/projects/:pid/sessions/:sid/stop", { params, payload: { save } });
    try {
      const { value, text } = await (progress === null
        ? stopping
        : watchWork(stopping, async () => {
            const look = await client.call("GET /v1/projects/:pid/sessions/:sid", { params });
            progress(progressLine(look.value));
          }));
      progress?.("");
      if (value.status === "failed" && save === "require") throw failedBefore(value);
      for (const line of lossLines(value, options.now)) note(line);
      return { json: text, text: safeLine(`${value.id} ${stateWord(value)}`) };
    } catch (error) {
      progress?.("");
      const isRefused = error instanceof Failure && error.code === "not_saved";
      throw isRefused && !json ? withPaths(error, params.sid) : error;
    }
  },
});
