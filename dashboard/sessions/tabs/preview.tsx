/** The tab of previews: what listens in the sandbox, each opened in a tab of its own. */
import { FrameAct } from "../../ui/act.tsx";
import { Row } from "../../ui/parts.tsx";
import type { Session } from "../session.ts";

export const Preview = ({
  session,
  ports,
}: {
  readonly session: Session;
  readonly ports: readonly number[];
}) => {
  const { project_id: project, id, status } = session;
  if (status !== "running") return <p className="quiet">A session has previews while it runs.</p>;
  return (
    <>
      {ports.length === 0 ? (
        <p className="quiet">No program in the sandbox listens on a port yet.</p>
      ) : (
        <ul className="rows" aria-label="Ports on which programs of the sandbox listen">
          {ports.map((port) => (
            <Row
              key={port}
              states={
                <FrameAct
                  name="open-port"
                  input={{ project, session: id, port: String(port) }}
                  label={`Open port ${String(port)}`}
                >
                  Open
                </FrameAct>
              }
            >
              {`Port ${String(port)}`}
            </Row>
          ))}
        </ul>
      )}
      <p className="actions">
        <FrameAct name="open-port" input={{ project, session: id }}>
          {ports.length === 0 ? "Open a port" : "Open another port"}
        </FrameAct>
      </p>
    </>
  );
};
