/** The fake's environments: what a project's sandboxes run on, and the builds of its Dockerfile with their logs. */

type Json = Readonly<Record<string, unknown>>;

export interface FakeEnvironment {
  /** What the project's sandboxes run on. `current` and `image_of` are ids of builds. */
  environment: Json;
  /** Newest first. */
  builds: Json[];
  /** The pieces of each build's log, by its id. */
  buildLogs: Record<string, string[]>;
}

export const NEW_BUILD_ID = "01995f2c-b111-7b0e-8a44-b7d15c2a0b99";

const OVER: ReadonlySet<unknown> = new Set(["ready", "failed", "cancelled"]);

const logOf = (pieces: readonly string[], isOver: boolean, query: URLSearchParams): Json => {
  const [after, limit] = [Number(query.get("after") ?? 0), Number(query.get("limit") ?? 50)];
  return {
    pieces: pieces.map((text, index) => ({ number: index + 1, text })).slice(after, after + limit),
    complete: isOver && after + limit >= pieces.length,
  };
};

/** Replaces the fields of one build. */
export const changeBuild = (world: FakeEnvironment, id: string, rest: Json): Json | undefined => {
  world.builds = world.builds.map((build) => (build["id"] === id ? { ...build, ...rest } : build));
  return world.builds.find((build) => build["id"] === id);
};

/** Begins a build, as the newest one. */
const begin = (world: FakeEnvironment): Json | undefined => {
  const [newest] = world.builds;
  if (newest === undefined) return undefined;
  const at = newest["ended_at"] ?? newest["created_at"];
  const fresh = { begun_at: null, ended_at: null, step: null, image: null, failure: null, tries: 0 };
  const build = { ...newest, ...fresh, id: NEW_BUILD_ID, status: "queued", cause: "asked", created_at: at };
  world.builds = [build, ...world.builds];
  world.environment = { ...world.environment, current: NEW_BUILD_ID };
  return build;
};

/** @returns undefined also if the request is about something else */
export const environmentAnswer = (
  world: FakeEnvironment,
  route: string,
  query: URLSearchParams,
): Json | undefined => {
  const [, method, rest] = /^(\w+) \/v1\/projects\/[^/]+\/environment(.*)$/.exec(route) ?? [];
  const [, , id] = (rest ?? "").split("/");
  const build = world.builds.find((one) => one["id"] === id);
  const at = `${method ?? ""} ${rest?.replace(id ?? " ", "…") ?? ""}`;
  switch (at) {
    case "GET ": {
      const named = (name: string) =>
        world.builds.find((one) => one["id"] === world.environment[name]) ?? null;
      return { ...world.environment, current: named("current"), image_of: named("image_of") };
    }
    case "GET /builds": {
      const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit"))];
      const next = from + limit < world.builds.length ? String(from + limit) : null;
      return { builds: world.builds.slice(from, from + limit), next_cursor: next };
    }
    case "POST /builds":
      return begin(world);
    case "GET /builds/…":
      return build;
    case "GET /builds/…/log":
      return build && logOf(world.buildLogs[id ?? ""] ?? [], OVER.has(build["status"]), query);
    case "POST /builds/…/cancel":
      return build && !OVER.has(build["status"])
        ? changeBuild(world, id ?? "", {
            status: "cancelled",
            failure: { code: "cancelled", message: "The build was cancelled." },
            ended_at: build["begun_at"] ?? build["created_at"],
          })
        : build;
    default:
      return undefined;
  }
};
