import { notificationState } from "../live/attention.ts";

/** Whether this browser tells the reader. It asks only after a click. */
export const NotificationButton = () => {
  const state = notificationState();
  if (state === "impossible") return null;
  if (state === "denied") return <span className="quiet">This browser blocks notifications.</span>;
  return (
    <button
      type="button"
      className="plain"
      data-action={state === "off" ? "allow-notifications" : "stop-notifications"}
    >
      {state === "off" ? "Notify me" : "Stop notifications"}
    </button>
  );
};
