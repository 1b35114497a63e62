/** How another system is set up to send a webhook trigger its deliveries: GitHub, a job of GitLab, and a line of curl. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { refusedLink } from "../elements/parts.ts";
import { ask, tell } from "../frame/dialog.ts";
import { RoleAct } from "../ui/act.tsx";
import { Callout, Codes, CopyBlock, CopyLine, Outside, Tag } from "../ui/parts.tsx";
import { curlLines, eventsOf, gitlabLines, type Receiver } from "./deliveries.ts";

type Project = Answer<"GET /v1/projects/:pid">;

/** By name, whether the value is masked in logs. Null: they are not this reader's to see. */
export type Secrets = ReadonlyMap<string, boolean> | null;

export interface Known {
  readonly project: Project;
  readonly secrets: Secrets;
}

interface About extends Known {
  readonly receiver: Receiver;
}

/** Addresses that only this machine, or only its network, can reach. */
const NEAR = /^https?:\/\/(?:localhost|127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[)/;

const DAY_MS = 24 * 3_600_000;
/** As long as the key of HMAC-SHA256 is useful. */
const SECRET_BYTES = 32;

/** 64 hexadecimal digits. The browser makes them, because the service gives no value away. */
const newSecret = (): string =>
  [...crypto.getRandomValues(new Uint8Array(SECRET_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

const makeSecret = async (pid: string, name: string, rotates: boolean): Promise<void> => {
  if (rotates) {
    const sure = await ask({
      title: `Create a new value of ${name}?`,
      text: "Senders keep working with the old value for 24 hours. Give them the new one in that time.",
      confirm: "Create a new value",
    });
    if (sure === null) return;
  }
  const value = newSecret();
  await request("PUT /v1/projects/:pid/secrets/:name", {
    params: { pid, name },
    payload: { value, service: true, ...(rotates && { previous_valid_ms: DAY_MS }) },
  });
  tell({
    title: `The new value of ${name}`,
    text: "Give it to the sender now. It is not shown again.",
    secret: value,
  });
};

/** The button that makes a secret's value. It is shown once, in a dialog. Owners have it. */
export const MakeSecret = ({ project, secrets, name }: Known & { readonly name: string }) =>
  secrets !== null && (
    <RoleAct
      entry="make-webhook-secret"
      label="Create a new value"
      about={name}
      does={() => makeSecret(project.id, name, secrets.has(name))}
    />
  );

const Secret = ({ receiver: { secret }, project, secrets }: About) => (
  <p className="parts">
    <span>
      The sender signs with the value of <code>{secret}</code>.
    </span>
    {secrets !== null && !secrets.has(secret) && <Tag tone="bad">has no value</Tag>}
    <span className="quiet">
      The service never shows it again, so give it to the sender when you make it.
    </span>
    <MakeSecret project={project} secrets={secrets} name={secret} />
  </p>
);

/** The page at GitHub that adds a webhook. Null: the repository is elsewhere. */
const gitHubPage = ({ repository }: Project): string | null =>
  repository.kind === "github" && repository.api_url === undefined
    ? `https://github.com/${encodeURIComponent(repository.owner)}/${encodeURIComponent(repository.name)}/settings/hooks/new`
    : null;

const GitHub = ({ receiver, project }: About) => {
  const page = gitHubPage(project);
  const events = eventsOf(receiver);
  return (
    <>
      <ol className="step-list">
        <li>
          {page === null ? (
            "In the repository, open Settings, Webhooks, Add webhook."
          ) : (
            <>
              Open <Outside to={page}>Add webhook</Outside> in the repository's settings at GitHub.
            </>
          )}
        </li>
        <li>
          Payload URL: <CopyLine text={receiver.url} />
        </li>
        <li>
          Content type: <CopyLine text="application/json" />
        </li>
        <li>
          Secret: the value of <code>{receiver.secret}</code>.
        </li>
        <li>SSL verification: leave it enabled.</li>
        <li>
          {events.length === 0 ? (
            "Events: choose those that should start a session. The trigger has no filter by event, so each delivery starts one."
          ) : (
            <>
              Events: choose Let me select individual events, and select <Codes names={events} />.
            </>
          )}
        </li>
        <li>
          Press Add webhook. GitHub sends a ping, and the service answers it with pong. The tab Recent
          Deliveries shows both.
        </li>
      </ol>
      <p className="quiet">
        An answer 401 means that the secret differs, 404 that the trigger is paused or not on the default
        branch yet, and 409 that the secret has no value here.
      </p>
    </>
  );
};

const GitLab = ({ receiver }: About) => (
  <>
    <p>
      A webhook of GitLab does not work with this address: the service answers it with 401. It accepts only a
      signature over the body alone.
    </p>
    <ul className="dots">
      <li>
        GitLab's secret token is sent as it is, in the header <code>X-Gitlab-Token</code>. It signs nothing.
      </li>
      <li>
        GitLab's newer signing token signs the delivery's id, its time and the body together, in the header{" "}
        <code>webhook-signature</code> (Standard Webhooks).
      </li>
    </ul>
    <p>A job of the pipeline works. It signs what it sends:</p>
    <ol className="step-list">
      <li>
        In the project, open Settings, CI/CD, Variables, and add <code>{receiver.secret}</code> with the
        secret's value. Make it masked.
      </li>
      <li>
        Add this job to <code>.gitlab-ci.yml</code>:
        <CopyBlock text={gitlabLines(receiver)} what="the job" />
      </li>
      <li>Push. The job's log shows the service's answer.</li>
    </ol>
  </>
);

const Curl = ({ receiver }: About) => (
  <>
    <p>
      Put the secret's value into the first line, and paste all of it into a shell. It sends a delivery that
      passes the trigger's filter, and each one starts a session.
    </p>
    <CopyBlock text={curlLines(receiver)} what="the command" />
  </>
);

const Sender = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <details className="group">
    <summary>{name}</summary>
    <div className="sender-steps">{children}</div>
  </details>
);

export const Senders = (about: About) => (
  <details className="senders">
    <summary>Set up a sender</summary>
    <div className="sender-list">
      <Secret {...about} />
      {NEAR.test(about.receiver.url) && (
        <Callout tone="warn">
          The address is only reachable from this machine or its network. For senders on the internet, the
          operator sets <code>PLATFORM_PUBLIC_URL</code> to a public address.
        </Callout>
      )}
      <Sender name="GitHub">
        <GitHub {...about} />
      </Sender>
      <Sender name="GitLab">
        <GitLab {...about} />
      </Sender>
      <Sender name="curl">
        <Curl {...about} />
      </Sender>
      <p className="quiet">
        A delivery that the service does not accept is in{" "}
        <a href={refusedLink(about.project.id)}>Refused deliveries</a>, with the reason. An accepted one is in
        the runs.
      </p>
    </div>
  </details>
);
