/** When a schedule runs, as a person picks it, and what follows from that: the words for it, and its next instants. */
import { SelectField, TextField } from "../ui/form.tsx";
import { Instants } from "./instants.tsx";
import { NAMED_WEEKDAYS, scheduleHint, scheduleWords } from "./schedule.ts";
import { type Typed, typedCron, typedWeekdays } from "./typed.ts";

/** What is typed in the form of a trigger, and how a part of it changes. */
export interface Write {
  readonly typed: Typed;
  readonly write: (part: Partial<Typed>) => void;
}

const EVERY = [
  ["day", "Every day"],
  ["weekday", "Every weekday (Monday to Friday)"],
  ["week", "On chosen days of the week"],
  ["month", "Every month"],
  ["cron", "As a cron line"],
] as const;

const WeekdayFields = ({ typed, write }: Write) => {
  const days = typedWeekdays(typed);
  const tick = (day: number, isTicked: boolean): void =>
    write({ weekdays: (isTicked ? [...days, day] : days.filter((one) => one !== day)).join() });
  return (
    <fieldset className="field days">
      <legend>On</legend>
      {NAMED_WEEKDAYS.map(([day, name]) => (
        <label key={day} className="check">
          <input
            type="checkbox"
            checked={days.includes(day)}
            // Without a day, the browser asks for one when the form is sent.
            required={days.length === 0}
            onChange={({ target }) => tick(day, target.checked)}
          />
          {name}
        </label>
      ))}
    </fieldset>
  );
};

const ScheduleFields = ({ typed, write }: Write) => (
  <>
    <SelectField
      name="every"
      label="Repeat"
      options={EVERY}
      value={typed.every}
      onWrite={(every) =>
        write({
          every: EVERY.find(([value]) => value === every)?.[0] ?? "cron",
          // The line begins with what was picked.
          ...(every === "cron" && { cron: typedCron(typed) }),
        })
      }
    />
    {typed.every === "week" && <WeekdayFields typed={typed} write={write} />}
    {typed.every === "month" && (
      <SelectField
        name="day"
        label="On day"
        hint="A month that lacks the day is left out."
        options={Array.from({ length: 31 }, (_, at) => [String(at + 1), String(at + 1)] as const)}
        value={typed.day}
        onWrite={(day) => write({ day })}
      />
    )}
    {typed.every === "cron" ? (
      <TextField
        name="cron"
        label="Schedule"
        hint="Six fields: second, minute, hour, day, month, weekday. `0 30 2 * * *` is 02:30 each day, `0 0 9 * * 1-5` is 09:00 from Monday to Friday."
        placeholder="0 30 2 * * *"
        required
        mono
        value={typed.cron}
        onWrite={(cron) => write({ cron })}
      />
    ) : (
      <TextField
        name="time"
        label="At"
        type="time"
        required
        value={typed.time}
        onWrite={(time) => write({ time })}
      />
    )}
  </>
);

const ZONES = Intl.supportedValuesOf("timeZone");

/** The schedule in words, or what surprises in it. Nothing where it has neither. */
const Words = ({ typed }: Pick<Write, "typed">) => {
  const cron = typedCron(typed);
  const words = scheduleWords(cron) ?? scheduleHint(cron);
  return words !== null && <p>{words}</p>;
};

/** @param upcoming the next instants, as the service has them */
export const CronFields = ({ typed, write, upcoming }: Write & { readonly upcoming: readonly string[] }) => (
  <>
    <ScheduleFields typed={typed} write={write} />
    <TextField
      name="timezone"
      label="Time zone"
      hint="An IANA name. The schedule is read in this zone."
      suggestions={ZONES}
      mono
      value={typed.timezone}
      onWrite={(timezone) => write({ timezone })}
    />
    <div className="field" aria-live="polite">
      <span className="field-name">Next runs</span>
      <Words typed={typed} />
      {upcoming.length === 0 ? (
        <p className="quiet">They appear here when the schedule can be read.</p>
      ) : (
        <Instants instants={upcoming} zone={typed.timezone === "" ? "UTC" : typed.timezone} />
      )}
    </div>
  </>
);
