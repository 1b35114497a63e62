/** Buttons for what a person does to a project, on several of its pages. */
import { showToken } from "../account/token.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { now } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { Act, RoleAct } from "../ui/act.tsx";

/** A token for git lives as long as setting up a computer takes, and a working day. */
const GIT_TOKEN_MS = 24 * 3_600_000;

/** The default branch of a new repository takes only a token of the whole account. */
const makeGitToken = async (): Promise<void> => {
  const expires = new Date(now() + GIT_TOKEN_MS).toISOString();
  const { token } = await request("POST /v1/tokens", { payload: { name: "git", expires_at: expires } });
  showToken("git, valid for 24 hours", token);
};

/** What git asks for at the project's address. */
export const GitSignIn = () => (
  <p className="quiet">
    When git asks, enter any user name, and an access token as the password.{" "}
    <Act label="Create an access token" does={makeGitToken} />
  </p>
);

/** Pauses all triggers of a project, or lets them run again. */
export const TriggersSwitch = ({ pid, isPaused }: { readonly pid: string; readonly isPaused: boolean }) => (
  <RoleAct
    entry={isPaused ? "resume-triggers" : "pause-triggers"}
    label={isPaused ? "Resume all triggers" : "Pause all triggers"}
    className=""
    does={async () => {
      await request("PATCH /v1/projects/:pid", { params: { pid }, payload: { triggers_paused: !isPaused } });
      notice(isPaused ? "The triggers of the project run again." : "All triggers of the project are paused.");
    }}
  />
);

/** Takes back that a project is deleted. */
export const Restore = ({
  project: { id: pid, name },
  label,
}: {
  readonly project: Project;
  readonly label: string;
}) => (
  <RoleAct
    entry="restore-project"
    label={label}
    className=""
    does={async () => {
      await request("POST /v1/projects/:pid/restore", { params: { pid } });
      notice(`${name} is restored.`);
    }}
  />
);

const tryKey = async (pid: string, names: readonly string[]): Promise<void> => {
  const params = { pid };
  const { secrets } = await request("GET /v1/projects/:pid/secrets", { params });
  const name = names.find((one) => secrets.some((secret) => secret.name === one)) ?? names[0] ?? "";
  const { outcome, message, advice } = await request("POST /v1/projects/:pid/secrets/:name/try", {
    params: { ...params, name },
  });
  // A reason stays on the page until it is dismissed.
  if (outcome !== "accepted") throw new Error(`${message} ${advice ?? ""}`.trim());
  notice(message);
};

interface Key {
  readonly pid: string;
  /** The key is under one of these names. */
  readonly names: readonly string[];
  /** Its name, if the page has several. */
  readonly about?: string;
}

/** Tries a key of a model provider. */
export const TryKey = ({ pid, names, about }: Key) => (
  <RoleAct
    entry="try-key"
    label="Try the key"
    {...(about !== undefined && { about })}
    does={() => tryKey(pid, names)}
  />
);
