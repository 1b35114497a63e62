/** What a project's sandboxes run on, and the builds of its Dockerfile (api.md 11). Instants are ISO 8601 strings. */

/** Paths are those of the repository. An empty context is the whole repository. */
interface BuildSource {
  context: string;
  target: string | null;
  args: Record<string, string>;
  /** Names of the project's secrets that steps can mount. */
  secrets: string[];
  /** The path of the devcontainer.json that says so. */
  devcontainer: string | null;
  /** The registry's image that a devcontainer.json names. Then nothing else of the source counts. */
  base: string | null;
  commit: string;
  /** Equal keys build equal images. */
  key: string;
}

export interface BuildFailure {
  code: string;
  message: string;
  /** Of the Dockerfile. */
  line?: number;
  /** The end of the failed step's output. */
  tail?: string;
}

export interface Build extends BuildSource {
  id: string;
  project_id: string;
  node_id: string;
  status: "queued" | "resolving" | "building" | "exporting" | "ready" | "failed" | "cancelled";
  cause: "manifest" | "session" | "asked" | "refresh";
  requested_by: string | null;
  dockerfile: string;
  tries: number;
  step: { step: number; line: number; instruction: string } | null;
  image: { digest: string; bytes: number; files: number } | null;
  failure: BuildFailure | null;
  created_at: string;
  begun_at: string | null;
  ended_at: string | null;
}

export interface Devcontainer {
  path: string;
  /** False: `platform.toml` does not name it. */
  used: boolean;
  /** Why a file that is not used could not be used. */
  problem: string | null;
  variables: Record<string, string>;
  /** The lifecycle commands that the setup command consists of. */
  commands: string[];
  /** Fields without an effect, of those that a person may expect to have one. */
  ignored: string[];
}

/** A tag from which the image was made. */
export interface Base {
  reference: string;
  /** The digest when the image was built. */
  built_digest: string | null;
  /** The digest now, and when the registry said so. */
  digest: string | null;
  looked_up_at: string | null;
  /** Why the last look failed. */
  problem: string | null;
}

export interface Environment {
  kind: "machine" | "image" | "dockerfile" | "devcontainer";
  image: string | null;
  /** The command that prepares each new sandbox's checkout. */
  setup: string | null;
  dockerfile: (BuildSource & { path: string }) | null;
  devcontainer: Devcontainer | null;
  /** Null: nothing is built on this node. */
  builder: string | null;
  /** The newest build of this Dockerfile on the node that answers. */
  current: Build | null;
  /** The build on whose image a new sandbox would boot now. */
  image_of: Build | null;
  bases: Base[];
  /** Sandboxes that wait for a session. */
  waiting: { wanted: number; ready: number; for_triggers: number; possible: boolean };
}

export interface BuildLog {
  /** In their order. A piece may end in the middle of a line. */
  pieces: { number: number; text: string }[];
  /** Whether the build is over, and nothing follows these pieces. */
  complete: boolean;
}

export interface Sandbox {
  id: string;
  provider: string;
  image: string | null;
  /** The build on whose image it runs, or for which it waits. Stale: of an earlier Dockerfile. */
  environment?: { build_id: string; stale: boolean } | null;
  status: string;
  failure: import("./wire.d.ts").Failure | null;
  /** It was started before the session. */
  waited?: boolean;
  created_at: string;
  boot_started_at?: string | null;
  active_at: string | null;
  ended_at: string | null;
}
