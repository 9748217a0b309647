#!/usr/bin/env python3
"""chat: turns, what the prefix cache saves, line editing and Ctrl-C, on a terminal and from a pipe."""

import os
import re
import signal
import subprocess

from program import DONE, FAILED, GEMMA, PROGRAM, SMOL, WRONG_USE, Case, environment, main
from terminal import Terminal

GREEDY = ("--temperature", "0", "--max-tokens", "12")


class Chat(Case):
    def test_turns_from_a_pipe(self):
        result = self.done("chat", SMOL, *GREEDY, stdin="My name is Ada.\n\nWhat is my name?\n/quit\nnever asked\n")
        figures = re.findall(r"^(\d+) prompt tokens(?: \((\d+) from the cache, (\d+) prefilled\))?", result.err, re.M)
        self.assertEqual(len(figures), 2)
        first, second = figures
        self.assertEqual(first[1], "")
        # all of the first turn that fills whole pages, prompt and reply, is known
        self.assertGreaterEqual(int(second[1]), int(first[0]) // 16 * 16)
        self.assertEqual(int(second[1]) + int(second[2]), int(second[0]))

    def test_a_conversation_is_what_run_would_say(self):
        expected = self.done("run", SMOL, "Name a colour.", *GREEDY).out
        replies = self.done("chat", SMOL, *GREEDY, "--json", stdin="Name a colour.\n/clear\nName a colour.\n").json_lines()
        self.assertEqual([r["text"] + "\n" for r in replies], [expected] * 2)
        self.assertEqual(len(replies), 2)

    def test_commands(self):
        result = self.done("chat", SMOL, *GREEDY, stdin="/help\n/what\n/quit \r\nnever asked\n")
        self.assertIn("/quit", result.err)
        self.assertIn("unknown command /what", result.err)
        self.assertEqual(result.out, "")

    def test_a_slash_may_begin_a_text(self):
        lines = "/etc/hosts\n/ is a slash\n//help\n"
        self.assertEqual(len(self.done("chat", SMOL, *GREEDY, "--json", stdin=lines).json_lines()), 3)

    def test_every_turn_has_its_json_line(self):
        lines = b"hi\n" + b"word " * 120 + b"\ncaf\xe9\n/what\n"
        answers = self.done("chat", SMOL, *GREEDY, "--context", "128", "--json", stdin=lines).json_lines()
        self.assertEqual(["error" in a for a in answers], [False, True, True, True])
        self.assertIn("the context is full", answers[1]["error"])

    def test_streams_that_fail(self):
        for arguments in (GREEDY, (*GREEDY, "--json")):
            with open("/dev/full", "wb") as full:
                process = subprocess.run([PROGRAM, "chat", SMOL, *arguments], input=b"hi\nhi\n", stdout=full, stderr=subprocess.PIPE,
                                         check=False, env=environment())
            self.assertEqual(process.returncode, FAILED)
            self.assertIn(b"No space left", process.stderr)
        folder = os.open("/", os.O_RDONLY)
        process = subprocess.run([PROGRAM, "chat", SMOL, *GREEDY], stdin=folder, capture_output=True, check=False, env=environment())
        os.close(folder)
        self.assertEqual(process.returncode, FAILED)
        self.one_line(process.stderr.decode())

    def test_what_it_does_not_show_is_refused(self):
        self.refused(WRONG_USE, "chat", SMOL, "--logprobs", "1", says="--logprobs")

    def test_a_full_context_is_said_and_can_be_left(self):
        text = "word " * 120
        result = self.done("chat", SMOL, *GREEDY, "--context", "128", stdin=f"hi\n{text}\n/clear\nhi\n")
        self.assertRegex(result.err, r"the context is full: the conversation has \d+ tokens, the context holds 128; /clear")
        self.assertEqual(len(re.findall("prompt tokens", result.err)), 2)

    def test_bad_text_is_refused_and_the_conversation_goes_on(self):
        result = self.done("chat", SMOL, *GREEDY, stdin=b"caf\xe9\nhi\n")
        self.assertIn("UTF-8", result.err)
        self.assertEqual(len(re.findall("prompt tokens", result.err)), 1)

    def test_a_model_without_turns(self):
        self.refused(FAILED, "chat", GEMMA, says="no chat template")


class OnATerminal(Case):
    def test_edited_lines_history_and_the_end(self):
        terminal = Terminal("chat", SMOL, *GREEDY)
        place = terminal.wait_for("> ")
        terminal.send("Name a colouX\x7fr.\n")
        place = terminal.wait_for(r"prompt tokens.*\n", place)
        place = terminal.wait_for("> ", place)
        terminal.send("\x1b[A\n")  # the line before
        place = terminal.wait_for(r"Name a colour\.", place)
        place = terminal.wait_for(r"prompt tokens \(\d+ from the cache", place)
        terminal.wait_for("> ", place)
        terminal.send("\x04")
        self.assertEqual(terminal.status(), DONE)

    def test_ctrl_c_stops_the_reply_alone(self):
        terminal = Terminal("chat", SMOL, "--temperature", "0", "--ignore-eos")
        place = terminal.wait_for("> ")
        terminal.send("Tell me a story.\n")
        place = terminal.wait_for("story.\n.*\\w{3}", place)
        terminal.send("\x03")
        place = terminal.wait_for("it was interrupted", place)
        place = terminal.wait_for("> ", place)
        terminal.send("/quit\n")
        self.assertEqual(terminal.status(), DONE)

    def test_ctrl_c_never_ends_it(self):
        terminal = Terminal("chat", SMOL, "--temperature", "0", "--ignore-eos")
        place = terminal.wait_for("> ")
        terminal.send("Tell me a story.\n")
        place = terminal.wait_for("story.\n.*\\w{3}", place)
        for _ in range(5):
            os.kill(terminal.process, signal.SIGINT)
        place = terminal.wait_for("it was interrupted", place)
        place = terminal.wait_for("> ", place)
        terminal.send("/quit\n")
        self.assertEqual(terminal.status(), DONE)

    def test_ctrl_c_on_a_line_gives_the_line_up(self):
        terminal = Terminal("chat", SMOL, *GREEDY)
        place = terminal.wait_for("> ")
        terminal.send("half a li")
        place = terminal.wait_for("half a li", place)
        terminal.send("\x03")
        place = terminal.wait_for("> ", place)
        terminal.send("/quit\n")
        self.assertEqual(terminal.status(), DONE)
        self.assertNotIn("prompt tokens", terminal.text())

    def test_characters_of_every_width(self):
        terminal = Terminal("chat", SMOL, *GREEDY)
        place = terminal.wait_for("> ")
        terminal.send("“日本” 😊\n")
        place = terminal.wait_for(r"prompt tokens", place)
        self.assertIn("“日本” 😊", terminal.text())
        terminal.wait_for("> ", place)
        terminal.send("\x04")
        self.assertEqual(terminal.status(), DONE)


if __name__ == "__main__":
    main()
