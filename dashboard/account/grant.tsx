/** What a token reaches, and until when. */
import { now } from "../elements/format.ts";
import { SelectField } from "../ui/form.tsx";

const DAY_MS = 86_400_000;

export const GrantFields = ({
  projects,
}: {
  readonly projects: readonly { readonly id: string; readonly name: string }[];
}) => (
  <>
    <SelectField
      name="project_id"
      label="Reaches"
      options={[["", "The whole account"], ...projects.map(({ id, name }) => [id, `Only ${name}`] as const)]}
    />
    <SelectField
      name="days"
      label="Expires"
      initial="90"
      options={[
        ["7", "In 7 days"],
        ["90", "In 90 days"],
        ["365", "In a year"],
        ["", "Never"],
      ]}
    />
  </>
);

/** The same for the API. */
export const grantOf = ({ project_id: project = "", days = "" }: Readonly<Record<string, string>>) => ({
  ...(project !== "" && { project_id: project }),
  ...(days !== "" && { expires_at: new Date(now() + Number(days) * DAY_MS).toISOString() }),
});
