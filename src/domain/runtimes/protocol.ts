/** What the Agent Client Protocol keeps programs from, as sentences for people. */

export const NO_QUESTIONS =
  "The Agent Client Protocol has no final form for questions with choices. The agent asks in its text, and a message answers it.";

export const NO_SUBAGENTS =
  "The Agent Client Protocol does not tell what a sub-agent does. Its work is shown as one call.";
