/** How a session is opened in an editor on the reader's own computer, and by ssh (docs/use/editors.md). */
import { Copied } from "../conversation/text/copy.tsx";
import { shortId } from "../elements/format.js";
import type { Session } from "./session.ts";

/** The session's name as a host of OpenSSH, as `platform ssh-config` sets it up. */
const hostOf = ({ project_id: project, id }: Session): string =>
  `${shortId(id)}.${shortId(project)}.platform`;

export const OpenInEditor = ({ session }: { readonly session: Session }) => {
  const host = hostOf(session);
  return (
    <section className="own-editor">
      <h3>In your own editor</h3>
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
