// pull_script.py inside the program, so that an installed couplet needs no file beside it.
        .section .rodata
        .global couplet_pull_script
couplet_pull_script:
        .incbin "pull_script.py"
        .byte 0
        .section .note.GNU-stack, "", @progbits
