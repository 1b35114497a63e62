/** How a session is opened in an editor on the reader's own computer, and by ssh (docs/use/editors.md). */
import { sshHost } from "../../src/domain/session/ssh-host.ts";
import { Copied } from "../conversation/text/copy.tsx";
import type { Session } from "../sessions/session.ts";

export const OpenInEditor = ({ session }: { readonly session: Session }) => {
  const host = sshHost(session.project_id, session.id);
  return (
    <section className="own-editor">
      <h2>In your own editor</h2>
      <p>
        Once on your computer, run <code>platform ssh-config --write</code>. Then this session is a host for
        ssh and for all that uses it. <a href="/docs/guide/editors">Editors and ssh</a>
      </p>
      <Copied text={`ssh ${host}`} what="the command">
        <pre>
          <code>{`ssh ${host}`}</code>
        </pre>
      </Copied>
      <p className="actions">
        <a className="button" href={`vscode://vscode-remote/ssh-remote+${host}/workspace`}>
          Open in VS Code
        </a>
      </p>
    </section>
  );
};
