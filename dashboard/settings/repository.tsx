/** A project's repository: its addresses, its connection to another server, and its credential there. */
import type { Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { GitSignIn } from "../projects/acts.tsx";
import { AppFields, credentialOf } from "../projects/credential.tsx";
import { counted } from "../elements/format.ts";
import { projectLink } from "../elements/parts.ts";
import { notice } from "../frame/notices.ts";
import { repositoryName } from "../projects/project.ts";
import { type Checking, CheckView } from "../projects/repository-check.tsx";
import { lackedRole } from "../frame/roles.ts";
import { RoleAct } from "../ui/act.tsx";
import { Form, TextField } from "../ui/form.tsx";
import { CopyLine, Facts, Time } from "../ui/parts.tsx";

type Credential = NonNullable<Request<"PUT /v1/projects/:pid/repository/credential">["payload"]>;

const GitFields = () => (
  <>
    <TextField name="username" label="User name" hint="For an `https://` address." />
    <TextField name="password" label="Password or access token" type="password" />
    <TextField name="ssh_private_key" label="Private key" hint="For an `ssh://` address." lines={3} mono />
    <TextField name="known_hosts" label="The server's line of known_hosts" lines={2} mono />
  </>
);

const GitHubFields = () => (
  <>
    <TextField
      name="token"
      label="Access token"
      hint="A fine-grained token for this repository, with read and write access to Contents, and to Pull requests if the project opens them."
      type="password"
    />
    <AppFields prefix="" />
  </>
);

interface Shown {
  readonly project: Project;
  /** Null: the repository cannot be reached. */
  readonly gitUrl: string | null;
  readonly checking: Checking;
}

const CredentialForm = ({
  project: { id: pid, repository },
  checking,
}: Pick<Shown, "project" | "checking">) => {
  const replace = async (typed: Readonly<Record<string, string>>): Promise<void> => {
    const payload = credentialOf("", typed) as Credential;
    await request("PUT /v1/projects/:pid/repository/credential", { params: { pid }, payload });
    notice("The repository's server accepted the new credential.");
    checking.again();
  };
  return (
    <details className="group">
      <summary>Replace the credential</summary>
      <p className="quiet">
        The service tries the new credential first. If the server refuses it, the old one stays.
      </p>
      <Form submit="Use this credential" sending="Trying the credential…" onSend={replace}>
        {repository.kind === "github" ? <GitHubFields /> : <GitFields />}
      </Form>
    </details>
  );
};

const readManifest = async (pid: string): Promise<void> => {
  const { triggers, errors } = await request("POST /v1/projects/:pid/sync", { params: { pid } });
  notice(
    errors.length > 0
      ? "platform.toml was read. It has errors."
      : `platform.toml was read: ${counted(triggers.length, "trigger")}.`,
    ["Show the triggers", projectLink(pid, "/triggers")],
  );
};

/** A directory for the clone: the address has the project's id. */
const directoryOf = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, "-")
    .replaceAll(/^-|-$/g, "") || "project";

export const RepositoryPart = ({ project, gitUrl, checking }: Shown) => {
  const { id, repository, manifest } = project;
  return (
    <>
      <Facts
        rows={[
          ["Repository", repositoryName(project)],
          ["Project id", <CopyLine key="id" text={id} />],
          ["Created", <Time key="created" at={project.created_at} />],
          [
            "Last read",
            manifest.synced_at !== null && (
              <>
                <Time at={manifest.synced_at} /> <code>{(manifest.commit ?? "").slice(0, 10)}</code>
              </>
            ),
          ],
        ]}
      />
      {gitUrl !== null && (
        <>
          <h3>Clone it</h3>
          <p>
            <CopyLine text={`git clone ${gitUrl} ${directoryOf(project.name)}`} />
          </p>
          <GitSignIn />
        </>
      )}
      <p className="actions">
        <RoleAct
          entry="sync-project"
          label="Read platform.toml now"
          className=""
          does={() => readManifest(id)}
        />
      </p>
      {repository.kind !== "hosted" && (
        <>
          <CheckView checking={checking} heading="h3" pid={id} />
          {lackedRole("replace-credential") === null && (
            <CredentialForm project={project} checking={checking} />
          )}
        </>
      )}
    </>
  );
};
