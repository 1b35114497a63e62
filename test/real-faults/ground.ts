/** Prepares a service for the plants: one session that has passed through every state, and one that runs. */
import { eventually } from "../support/service/account-view.ts";
import type { Ground } from "./checkers/plants.ts";
import type { Seen } from "./seen.ts";
import type { Trial } from "./trial.ts";

/** Nothing waits and nothing is live; triggers are paused. */
const emptied = async ({ service: { life, projectId } }: Trial): Promise<void> => {
  const project = `/v1/projects/${projectId}`;
  await life.call("PATCH", project, { triggers_paused: true });
  await eventually(async () => {
    const { queue } = (await life.call("GET", "/v1/queue")) as { queue: readonly { fire_id: string }[] };
    for (const { fire_id: id } of queue)
      await life.call("DELETE", `${project}/fires/${id}`).catch(() => undefined);
    const live = await Promise.all(
      ["provisioning", "running"].map((status) => life.call("GET", `${project}/sessions?status=${status}`)),
    );
    const ids = live.flatMap(({ sessions }) => (sessions as readonly { id: string }[]).map(({ id }) => id));
    for (const id of ids) await life.call("POST", `${project}/sessions/${id}/stop`, {});
    if (queue.length + ids.length > 0) throw new Error(`${queue.length} wait and ${ids.length} are live`);
  });
};

/** A webhook that started a session, and the second due instant that did. Null: on a slow machine they come later. */
const firesIn = ({ tables: { fires } }: Seen) => {
  const fired = fires.find(({ kind, status }) => kind === "webhook" && status === "fired");
  const [, instant] = fires
    .filter(({ kind, status }) => kind === "cron" && status === "fired")
    .toSorted((a, b) => (a.scheduledFor ?? 0) - (b.scheduledFor ?? 0));
  if (fired?.sessionId === undefined || fired.sessionId === null || instant === undefined) return null;
  return { fired: { id: fired.id, sessionId: fired.sessionId }, instant: instant.id };
};

export const groundOf = async (trial: Trial): Promise<Ground> => {
  const { service, load } = trial;
  const { life, projectId } = service;
  const project = `/v1/projects/${projectId}`;
  load.go();
  await eventually(async () => {
    if (firesIn(await trial.look()) === null) throw new Error("no webhook and no due instant has fired");
  });
  await load.pause();
  await emptied(trial);

  const started = async () => {
    const asked = load.books.ask("create", null);
    asked.sessionId = String((await life.call("POST", `${project}/sessions`, {}))["id"]);
    Object.assign(asked, { answer: 201, ended: load.books.tick() });
    await life.session(projectId, asked.sessionId, ["running"]);
    const sandbox = await life.call("GET", `${project}/sessions/${asked.sessionId}/sandbox`);
    return { sessionId: asked.sessionId, sandboxId: String(sandbox["id"]) };
  };
  const told = async (kind: "stop" | "remove", sessionId: string) => {
    const asked = load.books.ask(kind, sessionId);
    const target = `${project}/sessions/${sessionId}`;
    await (kind === "stop" ? life.call("POST", `${target}/stop`, {}) : life.call("DELETE", target));
    Object.assign(asked, { answer: kind === "stop" ? 200 : 204, ended: load.books.tick() });
  };

  const first = await started();
  const runtime = `${project}/sessions/${first.sessionId}/runtime`;
  const pushed = String((await life.call("POST", `${runtime}/push`, {}))["commit"]);
  load.books.pushed.set(first.sessionId, [pushed]);
  const request = { session_id: first.sessionId, title: "Take it" };
  const { number } = await life.call("POST", `${project}/change-requests`, request);
  await life.call("POST", `${project}/change-requests/${String(number)}/merge`, {});
  await life.call("POST", `${runtime}/scratch`, {});
  await told("stop", first.sessionId);
  await told("remove", (await started()).sessionId);
  const running = await started();

  const seen = await trial.check();
  const fires = firesIn(seen);
  if (fires === null) throw new Error("the fires are gone");
  return {
    ...fires,
    service,
    seen,
    look: () => trial.look(),
    ended: { ...first, pushed },
    running,
  };
};
